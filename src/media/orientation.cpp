#include "media/orientation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace sluice::media {

Orientation orientation_of_exif(int number) {
  switch (number) {
    case 2:
      return {.flipped_x = true};
    case 3:
      return {.flipped_x = true, .flipped_y = true};
    case 4:
      return {.flipped_y = true};
    case 5:
      return {.transposed = true};
    case 6:
      return {.transposed = true, .flipped_x = true};
    case 7:
      return {.transposed = true, .flipped_x = true, .flipped_y = true};
    case 8:
      return {.transposed = true, .flipped_y = true};
    default:
      return {};
  }
}

// x' = m0 x + m3 y,  y' = m1 x + m4 y
Orientation orientation_of_matrix(std::span<const std::int32_t, 9> matrix) {
  const auto size = [&](int at) { return std::abs(std::int64_t{matrix[at]}); };
  if (size(0) >= size(1)) return {.flipped_x = matrix[0] < 0, .flipped_y = matrix[4] < 0};
  return {.transposed = true, .flipped_x = matrix[3] < 0, .flipped_y = matrix[1] < 0};
}

std::string describe(const Orientation& orientation) {
  const auto& [transposed, x, y] = orientation;
  // Mirrored left to right first, then turned clockwise.
  const bool mirrored = transposed ? x == y : x != y;
  const int quarters = transposed ? (x ? 1 : 3) : (y ? 2 : 0);
  if (!mirrored) return quarters == 0 ? "" : fmt::format("turned by {}°", 90 * quarters);
  return quarters == 0 ? "mirrored" : fmt::format("mirrored and turned by {}°", 90 * quarters);
}

void place_row(std::span<const std::uint8_t> rgb, int row, int width, int height,
               const Orientation& orientation, std::span<std::uint8_t> upright) {
  const std::ptrdiff_t upright_width = orientation.transposed ? height : width;
  const int along = orientation.transposed ? orientation.flipped_y : orientation.flipped_x;
  const int across = orientation.transposed ? orientation.flipped_x : orientation.flipped_y;
  const std::ptrdiff_t lane = across ? height - 1 - row : row;
  const std::ptrdiff_t lane_step = orientation.transposed ? 1 : upright_width;
  const std::ptrdiff_t pixel_step = (orientation.transposed ? upright_width : 1) * (along ? -1 : 1);
  std::ptrdiff_t to = lane * lane_step - (along ? pixel_step * (width - 1) : 0);
  for (int column = 0; column < width; ++column, to += pixel_step)
    std::copy_n(&rgb[std::size_t{3} * column], 3, &upright[3 * to]);
}

}  // namespace sluice::media
