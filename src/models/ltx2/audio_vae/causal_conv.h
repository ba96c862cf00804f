#pragma once
// The autoencoder's convolutions over a clip's picture, [time steps, mel bins, channels], f32 or bf16: two
// rows of zeros before the first time step, none behind the last, one column of zeros on either side.

#include "nn/conv.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::ltx2 {

// x as it is, or normed over channels and through silu on its way in; `skip` is added to what comes out.
at::Tensor causal_conv(const nn::Conv& conv, const at::Tensor& x);
at::Tensor normed_causal_conv(const nn::Conv& conv, const at::Tensor& x, const at::Tensor& skip = {});

// A kernel of one place.
at::Tensor place_conv(const nn::Conv& conv, const at::Tensor& x);

// Of x with every time step and bin twice; the first time step of the result goes, because the causal axis
// starts with a single frame.
at::Tensor upsampling_conv(const nn::Conv& conv, const at::Tensor& x);

// Every second time step and bin, of which the first looks at itself and one behind it: one column of zeros
// behind the last bin, none in front; rows as everywhere.  [T, M] -> [(T + 1) / 2, M / 2].
at::Tensor downsampling_conv(const nn::Conv& conv, const at::Tensor& x);

// Bytes of the reused block (kernels/scratch.h) that one of them works in.  steps, bins: of what comes out.
struct CausalConvSize {
  std::int64_t steps = 0, bins = 0;
  std::int64_t in = 0, out = 0;
  std::int64_t kernel = 3;  // along each axis: 3, or 1 for place_conv
  std::int64_t step = 1;    // 2: downsampling_conv
};
std::int64_t causal_conv_scratch(const CausalConvSize& size, at::ScalarType dtype);

}  // namespace sluice::ltx2
