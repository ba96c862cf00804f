#include "models/ltx2/upsampler/clip_conv.h"
#include "models/ltx2/upsampler/upsampler.h"

#include <c10/core/ScalarType.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

std::int64_t positions(const LatentSize& size) {
  return size.frames * size.height * size.width;
}

// What exists at once, at most: tensors, and the block that convolutions work in, which only grows.
class Peak {
 public:
  explicit Peak(at::ScalarType dtype) : dtype_(dtype) {}

  std::int64_t tensor(const LatentSize& size, std::int64_t channels) const {
    return positions(size) * channels * static_cast<std::int64_t>(c10::elementSize(dtype_));
  }

  void conv(const LatentSize& size, std::int64_t in, std::int64_t out, std::int64_t taps_in_time,
            std::int64_t tensors) {
    scratch_ = std::max(scratch_, clip_conv_scratch({.frames = size.frames,
                                                     .height = size.height,
                                                     .width = size.width,
                                                     .in = in,
                                                     .out = out,
                                                     .taps_in_time = taps_in_time},
                                                    dtype_));
    hold(tensors);
  }
  void hold(std::int64_t tensors) { most_ = std::max(most_, scratch_ + tensors); }

  std::int64_t most() const { return most_; }

 private:
  at::ScalarType dtype_;
  std::int64_t scratch_ = 0, most_ = 0;
};

}  // namespace

Bytes upsample_memory(const UpsamplerConfig& config, const LatentSize& size, at::ScalarType compute) {
  const std::int64_t in = config.in_channels, mid = config.mid_channels;
  const std::int64_t taps = config.frame_by_frame ? 1 : 3;
  const Growth growth = Growth::of(config);
  const LatentSize grown = growth.grown(size);
  Peak peak(compute);
  const std::int64_t small = peak.tensor(size, mid), large = peak.tensor(grown, mid);
  const std::int64_t last = peak.tensor(grown, in);
  const std::int64_t f32 = static_cast<std::int64_t>(sizeof(float)) * in;

  peak.conv(size, in, mid, taps, peak.tensor(size, in) + small);
  if (config.blocks > 0) peak.conv(size, mid, mid, taps, 3 * small);  // what came in, conv1's, conv2's
  peak.conv(size, mid, growth.values() * mid, config.temporal ? 3 : 1,
            small + large + grow_memory(growth, size, mid, compute));
  const std::int64_t dropped = large / grown.frames * (growth.frames - 1);  // stays until it is convolved
  if (config.blocks > 0) peak.conv(grown, mid, mid, taps, 3 * large + dropped);
  peak.conv(grown, mid, in, taps, large + last);
  peak.hold(last + f32 * positions(grown));
  return static_cast<Bytes>(peak.most() + f32 * positions(size));
}

}  // namespace sluice::ltx2
