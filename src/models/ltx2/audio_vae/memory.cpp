#include "models/ltx2/audio_vae/memory.h"

#include "nn/conv.h"

#include <c10/core/ScalarType.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kF32 = 4;
constexpr std::int64_t kTaps = 9;  // of a 3x3 kernel
// What the memory pool touches for tensors that exist at once (published sizes, 0.5 s and 5 s: 1.07, 1.09),
// and what the convolution library compiles (2 MiB).
constexpr double kGaps = 1.08;
constexpr std::int64_t kPrograms = std::int64_t{2} << 20;

// What a convolution makes of its weights.
std::int64_t weight_tile(std::int64_t in, std::int64_t out, std::int64_t element) {
  return std::min(in * out * kTaps * element, nn::kConvWeightTile);
}

// Tensors of one level.
class Level {
 public:
  Level(std::int64_t positions, std::int64_t element) : positions_(positions), element_(element) {}

  std::int64_t tensor(std::int64_t channels) const { return positions_ * channels * element_; }

  // In the convolution library's order.
  std::int64_t weights(std::int64_t in, std::int64_t out) const { return weight_tile(in, out, element_); }

  // In f32 the norm is computed where it is wanted; otherwise in f32 beside it, twice.
  std::int64_t norm(std::int64_t channels) const {
    return element_ == kF32 ? positions_ * kF32 : 2 * positions_ * channels * kF32;
  }

  std::int64_t block(std::int64_t in, std::int64_t out) const {
    const std::int64_t first =
        2 * tensor(in) + std::max(norm(in), tensor(out) + weights(in, out));  // x, normed
    const std::int64_t second =
        tensor(in) + 2 * tensor(out) + std::max(norm(out), tensor(out) + weights(out, out));
    return std::max(first, second);
  }

 private:
  std::int64_t positions_;
  std::int64_t element_;
};

}  // namespace

std::int64_t audio_decode_memory(const AudioVaeConfig& config, std::int64_t latents, at::ScalarType compute,
                                 at::ScalarType weights) {
  const auto element = static_cast<std::int64_t>(c10::elementSize(compute));
  std::int64_t steps = latents, bins = config.latent_bins();
  std::int64_t channels = config.base_channels * config.ch_mult.back();
  // The block of widened weights is as large as the widest convolution's from there on.
  const std::int64_t widened = weights == compute ? 0 : weight_tile(channels, channels, element);
  std::int64_t peak = Level(steps * bins, element).block(channels, channels);
  for (std::size_t level = config.ch_mult.size(); level-- > 0;) {
    const Level here(steps * bins, element);
    const std::int64_t width = config.base_channels * config.ch_mult[level];
    peak = std::max({peak, here.block(channels, width), here.block(width, width)});
    channels = width;
    if (level == 0) break;
    const Level wide(4 * steps * bins, element);  // before its first time step goes
    peak =
        std::max(peak, here.tensor(channels) + 2 * wide.tensor(channels) + wide.weights(channels, channels));
    steps = 2 * steps - 1;
    bins *= 2;
  }
  return static_cast<std::int64_t>(kGaps * static_cast<double>(peak + widened)) + kPrograms;
}

}  // namespace sluice::ltx2
