#include "built_pictures.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/crc.h>
#include <libavutil/frame.h>
#include <libavutil/pixdesc.h>
}

#include <cstring>
#include <fstream>
#include <vector>

namespace sluice::media {
namespace {

using namespace std::literals;

// Bits from the highest down; a byte 0xff is followed by a stuffed zero, as JPEG wants.
class BitWriter {
 public:
  void put(std::uint32_t value, int count) {
    for (int bit = count - 1; bit >= 0; --bit) put_bit((value >> bit) & 1);
  }
  std::string finish() {
    while (filled_ != 0) put_bit(1);
    return bytes_;
  }

 private:
  void put_bit(std::uint32_t bit) {
    byte_ = byte_ << 1 | bit;
    if (++filled_ < 8) return;
    bytes_ += static_cast<char>(byte_);
    if ((byte_ & 0xff) == 0xff) bytes_ += '\0';
    byte_ = 0;
    filled_ = 0;
  }

  std::string bytes_;
  std::uint32_t byte_ = 0;
  int filled_ = 0;
};

std::string jpeg_segment(int marker, std::string_view content) {
  return "\xff"s + static_cast<char>(marker) + big_endian(static_cast<std::uint32_t>(content.size() + 2), 2) +
         std::string(content);
}

// One table of Huffman codes: twelve of four bits for the sizes 0 to 11; or a single one, of one bit, for "no
// more".
std::string huffman_tables() {
  std::string lengths(16, '\0'), dc = "\0"s, ac = "\x10"s;
  lengths[3] = 12;
  dc += lengths;
  for (char size = 0; size < 12; ++size) dc += size;
  lengths[3] = 0;
  lengths[0] = 1;
  ac += lengths + "\0"s;
  return jpeg_segment(0xc4, dc) + jpeg_segment(0xc4, ac);
}

// A block that differs from the one before by `step` everywhere.
void put_flat_block(BitWriter& bits, int step) {
  int size = 0;
  while (std::abs(step) >> size != 0) ++size;
  bits.put(static_cast<std::uint32_t>(size), 4);
  bits.put(static_cast<std::uint32_t>(step < 0 ? step + (1 << size) - 1 : step), size);
  bits.put(0, 1);
}

}  // namespace

void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string big_endian(std::uint32_t value, int size) {
  std::string bytes;
  for (int i = size - 1; i >= 0; --i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string little_endian_bytes(std::uint32_t value, int size) {
  const std::string bytes = big_endian(value, size);
  return {bytes.rbegin(), bytes.rend()};
}

std::string png_chunk(std::string_view kind, std::string_view content) {
  const std::string named = std::string(kind) + std::string(content);
  const std::uint32_t sum = ~av_crc(av_crc_get_table(AV_CRC_32_IEEE_LE), 0xffffffff,
                                    reinterpret_cast<const std::uint8_t*>(named.data()), named.size());
  return big_endian(static_cast<std::uint32_t>(content.size()), 4) + named + big_endian(sum, 4);
}

std::string png_header(std::uint32_t width, std::uint32_t height) {
  return "\x89PNG\r\n\x1a\n"s +
         png_chunk("IHDR", big_endian(width, 4) + big_endian(height, 4) + "\x08\x02\0\0\0"s);
}

std::string with_png_chunk(const std::string& png, std::string_view kind, std::string_view content) {
  constexpr std::size_t kBehindHeader = 8 + 25;
  return png.substr(0, kBehindHeader) + png_chunk(kind, content) + png.substr(kBehindHeader);
}

std::string exif_orientation_block(int orientation) {
  return "MM\0*"s + big_endian(8, 4) + big_endian(1, 2) + big_endian(274, 2) + big_endian(3, 2) +
         big_endian(1, 4) + big_endian(static_cast<std::uint32_t>(orientation), 2) + "\0\0"s +
         big_endian(0, 4);
}

std::string with_jpeg_segment(const std::string& jpeg, int marker, std::string_view content) {
  return jpeg.substr(0, 2) + jpeg_segment(marker, content) + jpeg.substr(2);
}

std::string four_plane_jpeg(const StoredInks& inks) {
  constexpr int kSide = 32, kBlocks = (kSide / 8) * (kSide / 8);
  std::string frame = "\x08"s + big_endian(kSide, 2) + big_endian(kSide, 2) + "\x04"s, scan = "\x04"s;
  for (char name : inks.names) {
    frame += std::string{name} + "\x11\0"s;
    scan += std::string{name} + "\0"s;
  }
  BitWriter bits;
  for (int block = 0; block < kBlocks; ++block)
    for (int plane : inks.planes) put_flat_block(bits, block == 0 ? plane - 128 : 0);
  // All steps 8: a block's mean is then the very number that is coded.
  return "\xff\xd8"s + jpeg_segment(0xee, "Adobe\0\x64\0\0\0\0"s + static_cast<char>(inks.adobe_transform)) +
         jpeg_segment(0xdb, "\0"s + std::string(64, '\x08')) + jpeg_segment(0xc0, frame) + huffman_tables() +
         jpeg_segment(0xda, scan + "\0\x3f\0"s) + bits.finish() + "\xff\xd9"s;
}

FramePtr blank_frame(const char* pixel_format, int width, int height) {
  FramePtr frame = new_frame();
  frame->format = av_get_pix_fmt(pixel_format);
  frame->width = width;
  frame->height = height;
  check_libav(av_frame_get_buffer(frame.get(), 0), pixel_format);
  for (const AVBufferRef* buffer : frame->buf)
    if (buffer != nullptr) std::memset(buffer->data, 0, buffer->size);
  return frame;
}

std::string encode_picture(const std::string& name, AVFrame& frame) {
  const AVCodec* encoder = avcodec_find_encoder_by_name(name.c_str());
  CodecPtr codec = new_codec(encoder);
  codec->width = frame.width;
  codec->height = frame.height;
  codec->pix_fmt = static_cast<AVPixelFormat>(frame.format);
  codec->color_range = AVCOL_RANGE_JPEG;
  codec->time_base = {1, 1};
  codec->flags |= AV_CODEC_FLAG_QSCALE;
  codec->global_quality = FF_QP2LAMBDA;  // the best
  check_libav(avcodec_open2(codec.get(), encoder, nullptr), name);
  frame.quality = codec->global_quality;
  PacketPtr packet = new_packet();
  check_libav(avcodec_send_frame(codec.get(), &frame), name);
  check_libav(avcodec_send_frame(codec.get(), nullptr), name);
  check_libav(avcodec_receive_packet(codec.get(), packet.get()), name);
  return {reinterpret_cast<const char*>(packet->data), static_cast<std::size_t>(packet->size)};
}

}  // namespace sluice::media
