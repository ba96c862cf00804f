#pragma once
// Many frames side by side in one picture, for a look at a whole clip.

#include "media/rgb_frame.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::media {

struct RgbImage {
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> pixels;  // [height][width][3]

  RgbFrame view() const { return {.height = height, .width = width, .pixels = pixels}; }
};

// Frames of one size, `columns` in a row, in reading order without gaps; places left over are black.
// Error(internal) for no frames, sizes that differ, or no columns.
RgbImage make_contact_sheet(std::span<const RgbFrame> frames, int columns);

}  // namespace sluice::media
