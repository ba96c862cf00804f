#include "models/ltx2/vocoder/memory.h"

#include "models/ltx2/vocoder/generator.h"
#include "models/ltx2/vocoder/line.h"
#include "models/ltx2/vocoder/wave_rows.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kF32 = 4;
constexpr std::int64_t kEnd = 7;  // taps of the first and the last convolution
// What the memory pool touches for tensors that exist at once (published sizes, 0.5 s and 5 s: 1.15, 1.12).
constexpr double kGaps = 1.12;

// Of the convolutions up to now: a block that only grows.
class Scratch {
 public:
  void add(const kernels::LineConv& conv) {
    bytes_ = std::max(bytes_, kernels::line_scratch(conv, at::get_num_threads()));
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

// Tensors of a generator at once, at most, beside scratch.
std::int64_t generator_memory(const GeneratorConfig& config, std::int64_t frames, Scratch& scratch) {
  std::int64_t samples = frames;
  std::int64_t before = WaveRows::bytes(samples, config.hidden_channels);
  scratch.add(same_line(config.in_channels, config.hidden_channels, kEnd));
  std::int64_t peak = WaveRows::bytes(samples, config.in_channels, kEnd / 2) + before;
  for (std::size_t stage = 0; stage < config.upsample_factors.size(); stage++) {
    const std::int64_t width = config.channels(stage + 1);
    const kernels::LineConv raise = raising_line(
        config.channels(stage), width, config.upsample_kernel_sizes[stage], config.upsample_factors[stage]);
    scratch.add(raise);
    for (std::size_t j = 0; j < config.resnet_kernel_sizes.size(); j++)
      for (std::int64_t dilation : config.resnet_dilations[j])
        scratch.add(same_line(width, width, config.resnet_kernel_sizes[j], dilation));
    samples = kernels::line_rows(raise, samples);
    const std::int64_t tensor = WaveRows::bytes(samples, width);
    peak = std::max(peak, before + tensor);
    const std::int64_t activated =
        activates_whole(config, width) ? WaveRows::bytes(samples, width, widest_reach(config)) : 0;
    peak = std::max(peak, 4 * tensor + activated);  // the stage's input, mean, block, hidden
    before = tensor;
  }
  return peak;
}

std::int64_t hops_of(const VocoderConfig& config, std::int64_t mel_frames) {
  const std::int64_t low = mel_frames * config.vocoder.total_factor();
  return (low + config.inner_mel.hop_length - 1) / config.inner_mel.hop_length;
}

}  // namespace

std::int64_t vocoder_tensors(const VocoderConfig& config, std::int64_t mel_frames) {
  const std::int64_t low = mel_frames * config.vocoder.total_factor();
  const std::int64_t hops = hops_of(config, mel_frames);
  const std::int64_t waves = config.vocoder.out_channels;
  const std::int64_t low_rate = waves * low * kF32;
  // A wave channel's spectrum and its squares, and the mel of all.
  const std::int64_t mel =
      hops * (4 * config.inner_mel.frequencies() + (waves + 1) * config.inner_mel.num_mel_channels) * kF32;
  // The wave is kept, and filled up to whole hops.
  const std::int64_t kept = 2 * low_rate + waves * hops * config.inner_mel.num_mel_channels * kF32;
  Scratch scratch;
  const std::int64_t first = generator_memory(config.vocoder, mel_frames, scratch) + scratch.bytes();
  const std::int64_t second = generator_memory(config.bwe_generator, hops, scratch) + scratch.bytes();
  return std::max({first, 3 * low_rate + mel + scratch.bytes(), kept + second});
}

std::int64_t vocoder_memory(const VocoderConfig& config, std::int64_t mel_frames) {
  return static_cast<std::int64_t>(kGaps * static_cast<double>(vocoder_tensors(config, mel_frames)));
}

}  // namespace sluice::ltx2
