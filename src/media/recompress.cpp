#include "media/picture.h"

#include <sluice/error.h>
#include "media/encoders.h"
#include "media/libav.h"

#include <fmt/format.h>
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/frame.h>
#include <libswscale/swscale.h>
}

#include <algorithm>
#include <memory>

namespace sluice::media {
namespace {

struct FreeScaler {
  void operator()(SwsContext* scaler) const { sws_freeContext(scaler); }
};

FramePtr new_picture(AVPixelFormat format, int width, int height) {
  FramePtr frame = new_frame();
  frame->format = format;
  frame->width = width;
  frame->height = height;
  check_libav(av_frame_get_buffer(frame.get(), 0), "cannot allocate a picture");
  return frame;
}

// swscale's own defaults, on purpose: BT.601 in limited range, colour samples by its bilinear filter.  The
// reference converts so (PyAV's reformat), whatever the size, and the model learned from what that does.
FramePtr convert(const AVFrame& from, AVPixelFormat format) {
  FramePtr to = new_picture(format, from.width, from.height);
  const std::unique_ptr<SwsContext, FreeScaler> scaler(
      sws_getContext(from.width, from.height, static_cast<AVPixelFormat>(from.format), from.width,
                     from.height, format, SWS_BILINEAR, nullptr, nullptr, nullptr));
  if (scaler == nullptr) throw Error(ErrorKind::internal, "libswscale has no way between RGB and yuv420p");
  check_libav(sws_scale(scaler.get(), from.data, from.linesize, 0, from.height, to->data, to->linesize),
              "libswscale");
  return to;
}

FramePtr to_yuv(const RgbFrame& picture, int width, int height) {
  FramePtr rgb = new_picture(AV_PIX_FMT_RGB24, width, height);
  for (int row = 0; row < height; ++row) {
    std::copy_n(&picture.pixels[std::size_t{3} * picture.width * row], std::size_t{3} * width,
                rgb->data[0] + std::ptrdiff_t{row} * rgb->linesize[0]);
  }
  FramePtr yuv = convert(*rgb, AV_PIX_FMT_YUV420P);
  yuv->pts = 0;
  return yuv;
}

CodecPtr open_encoder(int width, int height, int crf) {
  const AVCodec& encoder = find_encoder(kVideoEncoder);
  CodecPtr codec = new_codec(&encoder);
  codec->width = width;
  codec->height = height;
  codec->pix_fmt = AV_PIX_FMT_YUV420P;
  codec->framerate = codec->time_base = {1, 1};
  codec->thread_count = 1;  // the bytes depend on it
  codec->flags |= AV_CODEC_FLAG_BITEXACT;
  Dictionary options;
  options.set("preset", "veryfast");
  options.set("crf", fmt::format("{}", crf));
  if (avcodec_open2(codec.get(), &encoder, options.address()) < 0) {
    throw Error(ErrorKind::usage, fmt::format("libx264 refuses {} x {} at crf {}", width, height, crf),
                "give a crf from 0 (none) to 51");
  }
  return codec;
}

PacketPtr encode(const AVFrame& yuv, int crf) {
  const CodecPtr codec = open_encoder(yuv.width, yuv.height, crf);
  PacketPtr packet = new_packet();
  check_libav(avcodec_send_frame(codec.get(), &yuv), "libx264");
  check_libav(avcodec_send_frame(codec.get(), nullptr), "libx264");
  check_libav(avcodec_receive_packet(codec.get(), packet.get()), "libx264");
  return packet;
}

FramePtr decode(const AVPacket& packet) {
  const AVCodec* decoder = avcodec_find_decoder(AV_CODEC_ID_H264);
  if (decoder == nullptr) {
    throw Error(ErrorKind::io, "libavcodec has no decoder for h264",
                "install a complete FFmpeg (Debian and Ubuntu: apt install libavcodec-extra)");
  }
  const CodecPtr codec = new_codec(decoder);
  codec->thread_count = 1;
  check_libav(avcodec_open2(codec.get(), decoder, nullptr), "h264");
  check_libav(avcodec_send_packet(codec.get(), &packet), "h264");
  check_libav(avcodec_send_packet(codec.get(), nullptr), "h264");
  FramePtr frame = new_frame();
  check_libav(avcodec_receive_frame(codec.get(), frame.get()), "h264");
  return frame;
}

}  // namespace

Picture recompress(const Picture& picture, int crf) {
  if (crf == 0) return picture;
  const int width = picture.width / 2 * 2, height = picture.height / 2 * 2;
  if (!picture.view().is_whole() || width == 0 || height == 0) {
    throw Error(ErrorKind::internal, fmt::format("a picture of {} x {} with {} bytes to recompress",
                                                 picture.width, picture.height, picture.pixels.size()));
  }
  redirect_libav_log();
  const FramePtr decoded = decode(*encode(*to_yuv(picture.view(), width, height), crf));
  Picture result{.width = width,
                 .height = height,
                 .pixels = std::vector<std::uint8_t>(std::size_t{3} * width * height),
                 .conversions = picture.conversions};
  const FramePtr rgb = convert(*decoded, AV_PIX_FMT_RGB24);
  const std::size_t row_bytes = std::size_t{3} * width;
  for (int row = 0; row < height; ++row)
    std::copy_n(rgb->data[0] + std::ptrdiff_t{row} * rgb->linesize[0], row_bytes,
                &result.pixels[row_bytes * row]);
  return result;
}

}  // namespace sluice::media
