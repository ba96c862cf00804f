#pragma once
// The resampler of the skip beside the bandwidth extension.  In f32.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::ltx2 {

// A Hann-windowed sinc; computed, no checkpoint has it.  [1, 1, 14 ratio + 1]
at::Tensor hann_sinc_filter(std::int64_t ratio);
// [batch, channels, n] -> [batch, channels, n · ratio], with copies of the border samples around x.
at::Tensor hann_sinc_resample(const at::Tensor& x, std::int64_t ratio);

}  // namespace sluice::ltx2
