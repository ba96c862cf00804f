#pragma once
// A convolution over frames whose channels lie together, made of MicroProducts: a row of a
// product is a position, its neighbours along the picture's row are the next ones, and a segment is a tap.
// Weights are packed while they are hot, panel by panel, and every panel passes over all positions before the
// next.
//
//   y[t, h, w, :] = bias + Σ over dt, dh, dw of weight[:, :, dt, dh, dw] · x[t + dt, h + dh, w + dw, :] (+
//   skip)
//
// A step of 2 along rows and columns computes every second of them: x[t + dt, 2 h + dh, 2 w + dw, :].
//
// f32 sums in the order (dt, dh, dw, channel), rounded once: a place's result does not depend on how many
// frames, threads or rows are computed beside it.

#include "kernels/tap_panels.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::kernels {

struct FrameKernel {  // taps of an axis; odd
  std::int64_t t = 3, h = 3, w = 3;
  std::int64_t taps() const { return t * h * w; }
};

// Rows above and below a picture: zeros that x does not have and nothing is multiplied with, or rows of x.
enum class BorderRows { zeros, given };

struct FrameConvShape {
  std::int64_t frames = 0, height = 0, width = 0;  // of y
  std::int64_t in = 0, out = 0;
  FrameKernel kernel;
  BorderRows rows = BorderRows::zeros;
  std::int64_t step = 1;  // above 1: with BorderRows::given alone

  std::int64_t x_frames() const { return frames + kernel.t - 1; }
  std::int64_t x_height() const {
    return rows == BorderRows::given ? step * (height - 1) + kernel.h : height;
  }
  std::int64_t x_width() const { return step * (width - 1) + kernel.w; }
};

// Values from one position of x to the next: the channels, padded to whole words, and not a stride that puts
// neighbouring positions into the same few places of the first cache.
template <typename T>
std::int64_t position_stride(std::int64_t in);

template <typename T>  // float or Bf16
struct FrameConv {
  FrameConvShape shape;
  const T* x =
      nullptr;  // [x_frames][x_height][x_width][position_stride]; zeros up to a whole word of channels
  StoredValues weight;         // [out][in][t][h][w]; f32, bf16 or f16, any address
  StoredValues bias;           // [out]; values == nullptr: none
  std::vector<const T*> skip;  // of every frame of y [height][width][out], added before rounding; empty: none
  T* y = nullptr;              // [frames][height][width][out]
};

// Bytes of the memory that `workers` need: a packed panel and sums each.
template <typename T>
std::int64_t frame_conv_scratch(const FrameConvShape& shape, std::int64_t workers);

// `scratch`: so many bytes for at::get_num_threads(), at an address divisible by 64.
template <typename T>
void convolve(const FrameConv<T>& conv, std::byte* scratch);

namespace reference {
// The plain twin: value by value, in order.
template <typename T>
void convolve(const FrameConv<T>& conv);
}  // namespace reference

}  // namespace sluice::kernels
