#include "media/picture_decoder.h"

#include <sluice/error.h>
#include "media/demuxer.h"

#include <fmt/format.h>
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/crc.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string_view>

namespace sluice::media {
namespace {

constexpr const char* kFormats = "give a PNG, JPEG, WebP, TIFF or BMP file";

Error damaged(const EncodedPicture& encoded, std::string_view codec) {
  return Error(ErrorKind::corrupt_file,
               fmt::format("{}: the {} picture is damaged or cut short", encoded.path.string(), codec),
               "fetch or save the file again");
}

AVCodecID codec_of(PictureFormat format) {
  switch (format) {
    case PictureFormat::png:
      return AV_CODEC_ID_PNG;
    case PictureFormat::jpeg:
      return AV_CODEC_ID_MJPEG;
    case PictureFormat::webp:
      return AV_CODEC_ID_WEBP;
    case PictureFormat::gif:
      return AV_CODEC_ID_GIF;
    case PictureFormat::tiff:
      return AV_CODEC_ID_TIFF;
    case PictureFormat::bmp:
      return AV_CODEC_ID_BMP;
  }
  return AV_CODEC_ID_NONE;
}

// libav reads a picture's bytes from here.
class MemoryInput {
 public:
  explicit MemoryInput(std::span<const std::byte> bytes) : bytes_(bytes) {
    constexpr int kBuffer = 4096;
    auto* buffer = static_cast<unsigned char*>(av_malloc(kBuffer));
    if (buffer != nullptr) io_ = avio_alloc_context(buffer, kBuffer, 0, this, &read, nullptr, &seek);
    if (io_ == nullptr) {
      av_free(buffer);
      throw std::bad_alloc();
    }
  }
  ~MemoryInput() {
    av_freep(&io_->buffer);
    avio_context_free(&io_);
  }
  MemoryInput(const MemoryInput&) = delete;
  MemoryInput& operator=(const MemoryInput&) = delete;

  AVIOContext* io() { return io_; }

 private:
  static int read(void* self, std::uint8_t* to, int most) {
    auto& input = *static_cast<MemoryInput*>(self);
    const std::size_t count = std::min<std::size_t>(most, input.bytes_.size() - input.at_);
    if (count == 0) return AVERROR_EOF;
    std::memcpy(to, input.bytes_.data() + input.at_, count);
    input.at_ += count;
    return static_cast<int>(count);
  }
  static std::int64_t seek(void* self, std::int64_t to, int from) {
    auto& input = *static_cast<MemoryInput*>(self);
    const auto size = static_cast<std::int64_t>(input.bytes_.size());
    if ((from & AVSEEK_SIZE) != 0) return size;
    if (from == SEEK_CUR) to += static_cast<std::int64_t>(input.at_);
    if (from == SEEK_END) to += size;
    if (to < 0 || to > size) return AVERROR(EINVAL);
    input.at_ = static_cast<std::size_t>(to);
    return to;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  AVIOContext* io_ = nullptr;
};

bool holds_one_picture(std::string_view demuxer) {
  constexpr std::array<std::string_view, 3> kOthers = {"image2pipe", "ico", "fits"};
  return demuxer.ends_with("_pipe") || std::ranges::find(kOthers, demuxer) != kOthers.end();
}

Error no_picture(const EncodedPicture& encoded) {
  return Error(ErrorKind::bad_input, fmt::format("{}: is no picture that can be read", encoded.path.string()),
               kFormats);
}

// What is no single picture.
Error other_media(const EncodedPicture& encoded, const AVFormatContext& demuxer) {
  const bool has_pictures =
      std::any_of(demuxer.streams, demuxer.streams + demuxer.nb_streams,
                  [](AVStream* stream) { return stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO; });
  if (!has_pictures) return no_picture(encoded);
  return Error(
      ErrorKind::bad_input,
      fmt::format("{}: is a video ({}), not a picture", encoded.path.string(), demuxer.iformat->long_name),
      "give it with --video");
}

struct FirstPacket {
  AVCodecID codec;
  PacketPtr packet;
};

FirstPacket known_packet(const EncodedPicture& encoded) {
  FirstPacket first{.codec = codec_of(*encoded.format), .packet = new_packet()};
  check_libav(av_new_packet(first.packet.get(), static_cast<int>(encoded.bytes.size())),
              encoded.path.string());
  std::memcpy(first.packet->data, encoded.bytes.data(), encoded.bytes.size());
  return first;
}

FirstPacket found_packet(const EncodedPicture& encoded) {
  MemoryInput input(encoded.bytes);
  AVFormatContext* opened = avformat_alloc_context();
  if (opened == nullptr) throw std::bad_alloc();
  opened->pb = input.io();
  if (avformat_open_input(&opened, nullptr, nullptr, nullptr) < 0) throw no_picture(encoded);
  const DemuxerPtr demuxer(opened);
  if (!holds_one_picture(demuxer->iformat->name) || demuxer->nb_streams != 1)
    throw other_media(encoded, *demuxer);
  FirstPacket first{.codec = demuxer->streams[0]->codecpar->codec_id, .packet = new_packet()};
  if (av_read_frame(demuxer.get(), first.packet.get()) < 0)
    throw damaged(encoded, avcodec_get_name(first.codec));
  return first;
}

// What the decoder asks before it takes memory for a picture.
struct Gate {
  const DecodeWanted& wanted;
  std::uint8_t fill = 0;  // of the memory before it is decoded into
  bool was_shut = false;
  int width = 0;
  int height = 0;
};

int pass_gate(AVCodecContext* codec, AVFrame* frame, int flags) {
  auto& gate = *static_cast<Gate*>(codec->opaque);
  gate.width = codec->width;
  gate.height = codec->height;
  gate.was_shut = !gate.wanted(codec->width, codec->height);
  if (gate.was_shut) return AVERROR(EPERM);
  const int result = avcodec_default_get_buffer2(codec, frame, flags);
  for (const AVBufferRef* buffer : frame->buf)
    if (result >= 0 && buffer != nullptr) std::memset(buffer->data, gate.fill, buffer->size);
  return result;
}

CodecPtr open_strictly(AVCodecID id, Gate& gate, const EncodedPicture& encoded) {
  const AVCodec* decoder = avcodec_find_decoder(id);
  CodecPtr codec = new_codec(decoder);
  // In TIFF, strictness would refuse tags that libav does not know; see decode_tiff().
  if (id != AV_CODEC_ID_TIFF) codec->err_recognition = AV_EF_EXPLODE | AV_EF_CRCCHECK;
  codec->idct_algo = FF_IDCT_FAAN;  // of libav's the nearest to libjpeg's: at most 2 levels, hardly ever 3
  codec->opaque = &gate;
  codec->get_buffer2 = &pass_gate;
  if (decoder == nullptr || avcodec_open2(codec.get(), decoder, nullptr) < 0) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: {} is a codec that this libavcodec cannot decode", encoded.path.string(),
                            avcodec_get_name(id)),
                kFormats);
  }
  return codec;
}

int decode_packet(AVCodecContext& codec, const AVPacket& packet, AVFrame& frame) {
  int result = avcodec_send_packet(&codec, &packet);
  if (result < 0) return result;
  result = avcodec_receive_frame(&codec, &frame);
  if (result != AVERROR(EAGAIN)) return result;
  avcodec_send_packet(&codec, nullptr);
  return avcodec_receive_frame(&codec, &frame);
}

DecodedPicture decode_once(const EncodedPicture& encoded, const FirstPacket& first, Gate gate) {
  const std::string name = avcodec_get_name(first.codec);
  const CodecPtr codec = open_strictly(first.codec, gate, encoded);
  DecodedPicture picture{.codec = name, .frame = new_frame()};
  const int result = decode_packet(*codec, *first.packet, *picture.frame);
  picture.width = gate.width;
  picture.height = gate.height;
  if (gate.was_shut) {
    picture.frame.reset();
    return picture;
  }
  if (result == AVERROR_PATCHWELCOME || result == AVERROR(ENOSYS)) {
    throw Error(
        ErrorKind::bad_input,
        fmt::format("{}: is a kind of {} that this libavcodec cannot decode", encoded.path.string(), name),
        kFormats);
  }
  if (result == AVERROR(ENOMEM)) throw std::bad_alloc();
  if (result < 0 || picture.frame->decode_error_flags != 0) throw damaged(encoded, name);
  return picture;
}

std::uint32_t checksum(const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  const AVCRC* table = av_crc_get_table(AV_CRC_32_IEEE_LE);
  std::uint32_t sum = 0;
  for (int row = 0; row < frame.height; ++row) {  // TIFF: one plane, or planes of one size
    for (int plane = 0; plane < av_pix_fmt_count_planes(format); ++plane) {
      sum = av_crc(table, sum, frame.data[plane] + std::ptrdiff_t{row} * frame.linesize[plane],
                   av_image_get_linesize(format, frame.width, plane));
    }
  }
  return sum;
}

// libav's TIFF leaves out what it cannot read and says nothing, unless it is so strict that it refuses
// unknown tags too.  So it decodes twice, into memory of different contents: what differs was not in the
// file.
DecodedPicture decode_tiff(const EncodedPicture& encoded, const FirstPacket& first,
                           const DecodeWanted& wanted) {
  DecodedPicture picture = decode_once(encoded, first, {.wanted = wanted, .fill = 0});
  if (picture.frame == nullptr) return picture;
  const std::uint32_t before = checksum(*picture.frame);
  picture.frame.reset();
  picture = decode_once(encoded, first, {.wanted = wanted, .fill = 0xff});
  if (checksum(*picture.frame) != before) throw damaged(encoded, picture.codec);
  return picture;
}

}  // namespace

DecodedPicture decode_picture(const EncodedPicture& encoded, const DecodeWanted& wanted) {
  redirect_libav_log();
  const FirstPacket first = encoded.format ? known_packet(encoded) : found_packet(encoded);
  if (first.codec == AV_CODEC_ID_TIFF) return decode_tiff(encoded, first, wanted);
  return decode_once(encoded, first, {.wanted = wanted});
}

}  // namespace sluice::media
