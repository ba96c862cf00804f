#pragma once
// H.264 from RGB frames: libx264, yuv420p, BT.709 limited range, a constant exact rate.  One thread calls;
// x264 itself runs a fixed number of threads, because its output depends on that number.

#include <sluice/units.h>
#include "media/libav.h"
#include "media/rgb_frame.h"

#include <cstdint>
#include <functional>
#include <string>

namespace sluice::media {

struct VideoSettings {
  int width = 0;  // both even
  int height = 0;
  Rational rate;
  int crf = 19;  // the official exporter's
  std::string preset = "veryfast";
  int threads = 4;
};

class VideoEncoder {
 public:
  using PacketSink = std::function<void(AVPacket&)>;  // times in codec().time_base, duration set

  // Error(usage) for sizes or settings that H.264 cannot have, Error(io) when libx264 is missing.
  explicit VideoEncoder(const VideoSettings& settings);

  // Hands on the packets that are ready; they come some frames later and in decoding order.
  void encode(const RgbFrame& frame, const PacketSink& sink);
  void flush(const PacketSink& sink);

  const AVCodecContext& codec() const { return *codec_; }

 private:
  void drain(const PacketSink& sink);

  CodecPtr codec_;
  FramePtr picture_;  // yuv420p, filled anew for each frame
  PacketPtr packet_;
  std::int64_t frames_ = 0;
};

}  // namespace sluice::media
