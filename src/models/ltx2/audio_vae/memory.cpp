#include "models/ltx2/audio_vae/memory.h"

#include "models/ltx2/audio_vae/causal_conv.h"
#include "models/ltx2/audio_vae/encoder.h"

#include <c10/core/ScalarType.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

// What the memory pool touches for tensors that exist at once (published sizes, 0.5 s and 5 s: 1.07, 1.09).
constexpr double kGaps = 1.08;

// What exists at once, at most, while layers run one after the other: tensors, and the block that
// convolutions work in, which only grows.
class Peak {
 public:
  Peak(std::int64_t steps, std::int64_t bins, at::ScalarType dtype)
      : dtype_(dtype), steps_(steps), bins_(bins) {}

  // Into what there is now; `tensors`: bytes of those that exist beside.
  void conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t tensors,
            std::int64_t step = 1) {
    const CausalConvSize size = {
        .steps = steps_, .bins = bins_, .in = in, .out = out, .kernel = kernel, .step = step};
    scratch_ = std::max(scratch_, causal_conv_scratch(size, dtype_));
    peak_ = std::max(peak_, scratch_ + tensors);
  }

  void block(std::int64_t in, std::int64_t out) {
    conv(in, out, 3, tensor(in) + tensor(out));
    const std::int64_t shortcut = in == out ? 0 : tensor(out);
    if (shortcut) conv(in, out, 1, tensor(in) + 2 * tensor(out));
    conv(out, out, 3, tensor(in) + shortcut + 2 * tensor(out));
  }

  void upsample(std::int64_t channels) {
    const std::int64_t before = tensor(channels);
    steps_ = 2 * steps_ - 1;
    bins_ *= 2;
    conv(channels, channels, 3, before + tensor(channels));
  }

  void downsample(std::int64_t channels) {
    const std::int64_t before = tensor(channels);
    steps_ = (steps_ + 1) / 2;
    bins_ /= 2;
    conv(channels, channels, 3, before + tensor(channels), 2);
  }

  std::int64_t bytes() const { return static_cast<std::int64_t>(kGaps * static_cast<double>(peak_)); }

 private:
  std::int64_t tensor(std::int64_t channels) const {
    return steps_ * bins_ * channels * static_cast<std::int64_t>(c10::elementSize(dtype_));
  }

  at::ScalarType dtype_;
  std::int64_t steps_, bins_;
  std::int64_t scratch_ = 0, peak_ = 0;
};

}  // namespace

std::int64_t audio_decode_memory(const AudioVaeConfig& config, std::int64_t latents, at::ScalarType compute) {
  Peak peak(latents, config.latent_bins(), compute);
  std::int64_t channels = config.base_channels * config.ch_mult.back();
  peak.block(channels, channels);
  for (std::size_t level = config.ch_mult.size(); level-- > 0;) {
    const std::int64_t width = config.base_channels * config.ch_mult[level];
    peak.block(channels, width);
    peak.block(width, width);
    channels = width;
    if (level > 0) peak.upsample(channels);
  }
  return peak.bytes();
}

Bytes sound_encode_memory(const AudioVaeConfig& config, std::int64_t mel_frames, at::ScalarType compute) {
  Peak peak(mel_frames, config.mel_bins, compute);
  std::int64_t channels = config.base_channels;
  for (std::size_t level = 0; level < config.ch_mult.size(); ++level) {
    const std::int64_t width = config.base_channels * config.ch_mult[level];
    peak.block(channels, width);
    peak.block(width, width);
    channels = width;
    if (level + 1 < config.ch_mult.size()) peak.downsample(channels);
  }
  return static_cast<Bytes>(peak.bytes());
}

}  // namespace sluice::ltx2
