#pragma once
// How stored rows come to stand upright: EXIF's eight ways, which the display matrix of a video has too.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sluice::media {

struct Orientation {
  bool transposed = false;  // stored rows become columns; then the flips, of the upright picture
  bool flipped_x = false;
  bool flipped_y = false;

  bool operator==(const Orientation&) const = default;
};

Orientation orientation_of_exif(int number);  // 1 to 8

// The 3 x 3 matrix of libav and of mp4 (16.16 fixed point in its upper left), to the nearest quarter turn.
Orientation orientation_of_matrix(std::span<const std::int32_t, 9> matrix);

// "turned by 90°", clockwise, or "mirrored and turned by 90°"; empty where nothing is to do.
std::string describe(const Orientation& orientation);

// Puts row `row` of a stored picture of `width` x `height` pixels, RGB, into the upright one.
void place_row(std::span<const std::uint8_t> rgb, int row, int width, int height,
               const Orientation& orientation, std::span<std::uint8_t> upright);

}  // namespace sluice::media
