#include "media/pixels.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace sluice::media {
namespace {

constexpr std::array<const char*, 3> kChannelNames = {"red", "green", "blue"};

// std::lrint rounds half to even in the default rounding mode.
std::uint8_t to_code(float x) {
  float y = std::clamp(0.5f * x + 0.5f, 0.0f, 1.0f);
  return static_cast<std::uint8_t>(std::lrint(255.0f * y));
}

void check_finite(const PlanarFrame& frame, std::size_t channel, std::int64_t frame_index) {
  std::span<const float> plane = frame.planes[channel];
  auto bad = std::find_if(plane.begin(), plane.end(), [](float x) { return !std::isfinite(x); });
  if (bad == plane.end()) return;
  std::ptrdiff_t at = bad - plane.begin();
  throw Error(ErrorKind::non_finite,
              fmt::format("frame {}: {} is {} at row {}, column {}", frame_index, kChannelNames[channel],
                          *bad, at / frame.width, at % frame.width));
}

}  // namespace

void to_rgb8(const PlanarFrame& frame, std::int64_t frame_index, std::span<std::uint8_t> rgb) {
  std::size_t count = static_cast<std::size_t>(frame.height) * static_cast<std::size_t>(frame.width);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    std::span<const float> plane = frame.planes[channel];
    if (plane.size() != count || rgb.size() != 3 * count) {
      throw Error(ErrorKind::internal,
                  fmt::format("frame {}: {} values in a plane and {} bytes for {} x {} pixels", frame_index,
                              plane.size(), rgb.size(), frame.width, frame.height));
    }
    check_finite(frame, channel, frame_index);
    for (std::size_t i = 0; i < count; ++i) rgb[3 * i + channel] = to_code(plane[i]);
  }
}

}  // namespace sluice::media
