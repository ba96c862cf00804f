#pragma once
// RGB to YCbCr 4:2:0 as BT.709 in limited range:
//   Y' = 16 + 219 (.2126 R + .7152 G + .0722 B),  Cb' = 128 + 224 (B - Y) / 1.8556,  Cr' = 128 + 224 (R - Y)
//   / 1.5748
// with R, G, B in [0, 1]; chroma from the mean of 2 x 2 pixels, so that it sits in their middle.
// Integers only: the same bytes on every machine, each code value the formula's own, rounded to the nearest.

#include "media/rgb_frame.h"

#include <cstddef>
#include <cstdint>

namespace sluice::media {

struct Yuv420Planes {
  struct Plane {
    std::uint8_t* data = nullptr;
    std::ptrdiff_t stride = 0;  // bytes from row to row
  };
  Plane y;   // [height][width]
  Plane cb;  // [height / 2][width / 2]
  Plane cr;
};

// The frame's height and width must be even.
void to_yuv420(const RgbFrame& frame, const Yuv420Planes& planes);

}  // namespace sluice::media
