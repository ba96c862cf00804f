#pragma once
// Convolutions of a whole clip whose channels lie together, [frames, height, width, channels], contiguous,
// f32 or bf16: zeros around each picture and before and behind the clip, so that as much comes out as went
// in.  A clip goes through in pieces of frames, of which only one stands with its border in memory; where
// pieces end changes no bit.

#include "nn/conv.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace sluice::ltx2 {

struct ClipConvSize {
  std::int64_t frames = 0, height = 0, width = 0;
  std::int64_t in = 0, out = 0;
  std::int64_t taps_in_time = 3;  // 1: every frame by itself

  std::int64_t piece() const;  // frames that come out at once
};

// 3x3x3, or 3x3 over each frame: as the weight's shape says.
at::Tensor clip_conv(const nn::Conv& conv, const at::Tensor& clip);

// The same in pieces for those who do not keep the result: done(first frame, [n, height, width, out]), in
// order; the tensor is valid within the call.
using ClipPiece = std::function<void(std::int64_t first, const at::Tensor& piece)>;
void clip_conv_pieces(const nn::Conv& conv, const at::Tensor& clip, const ClipPiece& done);

// Bytes of the reused block (kernels/scratch.h) that one works in, on as many threads as LibTorch has.
std::int64_t clip_conv_scratch(const ClipConvSize& size, at::ScalarType dtype);

}  // namespace sluice::ltx2
