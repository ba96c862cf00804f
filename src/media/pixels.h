#pragma once
// From the video decoder's numbers to 8-bit pixels, bit for bit as the reference rounds in f32:
//   y = clamp(0.5 x + 0.5, 0, 1),  pixel = round_half_to_even(255 y)

#include <array>
#include <cstdint>
#include <span>

namespace sluice::media {

// One decoded frame: three planes, each [height][width], that may lie apart (as in a tensor [3, frames,
// height, width]).
struct PlanarFrame {
  int height = 0;
  int width = 0;
  std::array<std::span<const float>, 3> planes;  // red, green, blue; in about [-1, 1]
};

// Fills `rgb` ([height][width][3]).  Error(non_finite) names `frame_index` and the place of the first NaN or
// infinity.
void to_rgb8(const PlanarFrame& frame, std::int64_t frame_index, std::span<std::uint8_t> rgb);

}  // namespace sluice::media
