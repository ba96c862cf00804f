#include "media/row_stretch.h"

#include <algorithm>
#include <cmath>

namespace sluice::media {
namespace {

constexpr int kWhole = 256;

}  // namespace

RowStretch::RowStretch(int from, int to) : from_(from), to_(to) {
  for (int i = 0; i < to && is_needed(); ++i) {
    const double at = std::clamp((i + 0.5) * from / to - 0.5, 0.0, from - 1.0);
    const int first = static_cast<int>(at);
    taps_.push_back(
        {first, std::min(first + 1, from - 1), static_cast<int>(std::lround((at - first) * kWhole))});
  }
}

void RowStretch::stretch(std::span<const std::uint8_t> rgb, std::span<std::uint8_t> stretched) const {
  for (std::size_t i = 0; i < taps_.size(); ++i) {
    const auto& [first, second, part] = taps_[i];
    for (int channel = 0; channel < 3; ++channel) {
      const int sum = (kWhole - part) * rgb[std::size_t{3} * first + channel] +
                      part * rgb[std::size_t{3} * second + channel];
      stretched[3 * i + channel] = static_cast<std::uint8_t>((sum + kWhole / 2) / kWhole);
    }
  }
}

}  // namespace sluice::media
