#include "models/ltx2/audio_vae/mel_filters.h"

#include <algorithm>
#include <cmath>

namespace sluice::ltx2 {
namespace {

// Linear up to here, logarithmic above.
constexpr double kKnee = 1000;    // Hz
constexpr double kKneeMel = 15;   // = 1000 · 3 / 200
constexpr double kPerMel = 27.0;  // mels for a factor of kFactor
constexpr double kFactor = 6.4;

}  // namespace

double to_mel(double hertz) {
  if (hertz < kKnee) return hertz * 3 / 200;
  return kKneeMel + std::log(hertz / kKnee) * kPerMel / std::log(kFactor);
}

double to_hertz(double mel) {
  if (mel < kKneeMel) return mel * 200 / 3;
  return kKnee * std::exp((mel - kKneeMel) * std::log(kFactor) / kPerMel);
}

std::vector<MelFilter> mel_filters(const MelScale& scale) {
  const double low = to_mel(scale.lowest), high = to_mel(scale.highest);
  auto point = [&](std::int64_t i) {
    return to_hertz(low + (high - low) * static_cast<double>(i) / static_cast<double>(scale.bins + 1));
  };
  const std::int64_t frequencies = scale.window / 2 + 1;
  const double step = static_cast<double>(scale.sample_rate / 2) / static_cast<double>(frequencies - 1);
  std::vector<MelFilter> filters(static_cast<std::size_t>(scale.bins));
  for (std::int64_t bin = 0; bin < scale.bins; ++bin) {
    const double begin = point(bin), top = point(bin + 1), end = point(bin + 2);
    MelFilter& filter = filters[static_cast<std::size_t>(bin)];
    for (std::int64_t k = 0; k < frequencies; ++k) {
      const double hertz = static_cast<double>(k) * step;
      const double height = std::min((hertz - begin) / (top - begin), (end - hertz) / (end - top));
      if (height <= 0) continue;
      if (filter.weights.empty()) filter.first = k;
      filter.weights.push_back(static_cast<float>(height * 2 / (end - begin)));
    }
  }
  return filters;
}

}  // namespace sluice::ltx2
