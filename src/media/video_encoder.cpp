#include "media/video_encoder.h"

#include <sluice/error.h>
#include "media/encoders.h"
#include "media/yuv420.h"

#include <fmt/format.h>
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/opt.h>
}

#include <limits>

namespace sluice::media {
namespace {

// H.264's largest level allows 16384 in each direction.
constexpr int kMaxSide = 16384;

void check_settings(const VideoSettings& settings) {
  auto fits = [](int side) { return side > 0 && side <= kMaxSide && side % 2 == 0; };
  if (!fits(settings.width) || !fits(settings.height)) {
    throw Error(ErrorKind::usage,
                fmt::format("H.264 cannot have {} x {} pixels", settings.width, settings.height),
                fmt::format("give even sizes up to {}", kMaxSide));
  }
  constexpr std::int64_t kMaxTicks = std::numeric_limits<std::int32_t>::max();
  const Rational& rate = settings.rate;
  if (rate.num <= 0 || rate.den <= 0 || rate.num > kMaxTicks || rate.den > kMaxTicks) {
    throw Error(ErrorKind::usage, fmt::format("mp4 cannot have {} frames per second", to_string(rate)),
                "give a fraction of numbers below 2^31, such as 24000/1001");
  }
}

// Matrix, primaries, transfer and range are written into the stream, so that no player has to guess from the
// size.
void set_colour(AVCodecContext& codec) {
  codec.pix_fmt = AV_PIX_FMT_YUV420P;
  codec.colorspace = AVCOL_SPC_BT709;
  codec.color_primaries = AVCOL_PRI_BT709;
  codec.color_trc = AVCOL_TRC_BT709;
  codec.color_range = AVCOL_RANGE_MPEG;
  codec.chroma_sample_location = AVCHROMA_LOC_CENTER;  // the mean of 2 x 2 pixels
}

CodecPtr open_codec(const VideoSettings& settings) {
  const AVCodec& encoder = find_encoder(kVideoEncoder);
  CodecPtr codec = new_codec(&encoder);
  codec->width = settings.width;
  codec->height = settings.height;
  codec->sample_aspect_ratio = {1, 1};
  codec->framerate = {static_cast<int>(settings.rate.num), static_cast<int>(settings.rate.den)};
  codec->time_base = av_inv_q(codec->framerate);
  codec->thread_count = settings.threads;
  codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_BITEXACT;
  set_colour(*codec);

  Dictionary options;
  options.set("preset", settings.preset);
  options.set("crf", fmt::format("{}", settings.crf));
  // x264's macroblock tree reads memory that it never wrote wherever a row is no multiple of 8 macroblocks
  // (128 pixels), so the same frames give other bytes from one run to the next (x264 164, with assembly).
  options.set("mbtree", "0");
  int result = avcodec_open2(codec.get(), &encoder, options.address());
  if (result < 0) {
    throw Error(
        ErrorKind::usage,
        fmt::format("libx264 refuses {} x {} at {} frames per second, crf {}, preset '{}'", settings.width,
                    settings.height, to_string(settings.rate), settings.crf, settings.preset));
  }
  return codec;
}

}  // namespace

VideoEncoder::VideoEncoder(const VideoSettings& settings) : picture_(new_frame()), packet_(new_packet()) {
  check_settings(settings);
  codec_ = open_codec(settings);
  picture_->format = codec_->pix_fmt;
  picture_->width = codec_->width;
  picture_->height = codec_->height;
  check_libav(av_frame_get_buffer(picture_.get(), 0), "cannot allocate a picture");
}

void VideoEncoder::encode(const RgbFrame& frame, const PacketSink& sink) {
  if (!frame.is_whole() || frame.width != codec_->width || frame.height != codec_->height) {
    throw Error(ErrorKind::internal,
                fmt::format("frame {} is {} x {} with {} bytes in a video of {} x {}", frames_, frame.width,
                            frame.height, frame.pixels.size(), codec_->width, codec_->height));
  }
  // The encoder may still hold the buffer of an earlier frame; then this one gets a new buffer.
  check_libav(av_frame_make_writable(picture_.get()), "cannot allocate a picture");
  to_yuv420(frame, {.y = {picture_->data[0], picture_->linesize[0]},
                    .cb = {picture_->data[1], picture_->linesize[1]},
                    .cr = {picture_->data[2], picture_->linesize[2]}});
  picture_->pts = frames_++;
  check_libav(avcodec_send_frame(codec_.get(), picture_.get()), "libx264");
  drain(sink);
}

void VideoEncoder::flush(const PacketSink& sink) {
  check_libav(avcodec_send_frame(codec_.get(), nullptr), "libx264");
  drain(sink);
}

void VideoEncoder::drain(const PacketSink& sink) {
  for (;;) {
    int result = avcodec_receive_packet(codec_.get(), packet_.get());
    if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return;
    check_libav(result, "libx264");
    packet_->duration = 1;  // libx264 leaves it out; without it the last frame would last no time
    sink(*packet_);
    av_packet_unref(packet_.get());
  }
}

}  // namespace sluice::media
