#include "models/ltx2/audio_vae/resampler.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace sluice::ltx2 {
namespace {

constexpr double kRolloff = 0.99;
constexpr double kZeroCrossings = 6;

// x: in zero crossings.
double windowed_sinc(double x) {
  if (x == 0) return 1;
  if (std::abs(x) >= kZeroCrossings) return 0;
  const double root = std::cos(x * std::numbers::pi / kZeroCrossings / 2);
  return std::sin(x * std::numbers::pi) / (x * std::numbers::pi) * root * root;
}

}  // namespace

ResampleRatio::ResampleRatio(std::int64_t from_rate, std::int64_t to_rate)
    : from(from_rate / std::gcd(from_rate, to_rate)),
      to(to_rate / std::gcd(from_rate, to_rate)),
      crossings(kRolloff * std::min(1.0, static_cast<double>(to) / static_cast<double>(from))),
      taps(static_cast<std::int64_t>(std::floor(2 * kZeroCrossings / crossings)) + 1) {}

// Result i · to + phase lies phase · from / to samples behind sample i · from.
Resampler::Resampler(const ResampleRatio& ratio)
    : ratio_(ratio), weights_(at::empty({ratio.to, ratio.taps}, at::kFloat)) {
  auto* out = weights_.data_ptr<float>();
  for (std::int64_t phase = 0; phase < ratio.to; ++phase) {
    const double at = static_cast<double>(phase * ratio.from) / static_cast<double>(ratio.to);
    for (std::int64_t tap = 0; tap < ratio.taps; ++tap) {
      const double distance = static_cast<double>(first_tap(phase) + tap) - at;
      *out++ = static_cast<float>(windowed_sinc(distance * ratio.crossings) * ratio.crossings);
    }
  }
}

// The first sample, from i · from on, that result `phase` looks at.
std::int64_t Resampler::first_tap(std::int64_t phase) const {
  const double at = static_cast<double>(phase * ratio_.from) / static_cast<double>(ratio_.to);
  return static_cast<std::int64_t>(std::ceil(at - kZeroCrossings / ratio_.crossings));
}

void Resampler::run(std::span<const float> wave, std::int64_t first, std::span<float> y) const {
  const auto samples = static_cast<std::int64_t>(wave.size());
  const auto* weights = weights_.const_data_ptr<float>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::int64_t n = first + static_cast<std::int64_t>(i), phase = n % ratio_.to;
    const std::int64_t start = n / ratio_.to * ratio_.from + first_tap(phase);
    const std::int64_t begin = std::max<std::int64_t>(-start, 0),
                       end = std::min(ratio_.taps, samples - start);
    const float* weight = weights + phase * ratio_.taps;
    double sum = 0;
    for (std::int64_t tap = begin; tap < end; ++tap)
      sum += static_cast<double>(weight[tap]) * wave[static_cast<std::size_t>(start + tap)];
    y[i] = static_cast<float>(sum);
  }
}

}  // namespace sluice::ltx2
