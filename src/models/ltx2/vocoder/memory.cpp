#include "models/ltx2/vocoder/memory.h"

#include "models/ltx2/vocoder/generator.h"

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kF32 = 4;
// What the memory pool touches for tensors that exist at once, at most (published sizes, 0.5 s, 5 s and 12 s:
// 1.00, 1.10, 1.13).
constexpr double kGaps = 1.12;

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
  // The wave, filled up to whole hops, and its mel; what comes out at the high rate.
  const std::int64_t kept = 2 * low_rate + waves * hops * config.inner_mel.num_mel_channels * kF32;
  const std::int64_t high_rate = low_rate * config.resample_ratio();
  const GeneratorMemory first = generator_memory(config.vocoder, mel_frames);
  const GeneratorMemory second = generator_memory(config.bwe_generator, hops);
  const std::int64_t scratch = std::max(first.scratch, second.scratch);
  return std::max({low_rate + first.bytes(), 3 * low_rate + mel + first.scratch,
                   kept + high_rate + second.bytes() - second.scratch + scratch});
}

std::int64_t vocoder_memory(const VocoderConfig& config, std::int64_t mel_frames) {
  return static_cast<std::int64_t>(kGaps * static_cast<double>(vocoder_tensors(config, mel_frames)));
}

}  // namespace sluice::ltx2
