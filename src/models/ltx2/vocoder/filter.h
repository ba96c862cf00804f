#pragma once
// FIR filters that change the rate of every channel of a wave [batch, channels, n] alike, with copies of the
// border samples around it.  All in f32.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::ltx2 {

struct UpFilter {
  std::int64_t ratio = 1;
  std::int64_t pad = 0;  // border copies on either side, before filtering
  std::int64_t cut_left = 0;
  std::int64_t cut_right = 0;  // samples of the result that go
};

struct DownFilter {
  std::int64_t ratio = 1;
  std::int64_t pad_left = 0;
  std::int64_t pad_right = 0;
};

// filter: [1, 1, taps].  Zeros between the samples, the filter over them, times ratio.
at::Tensor filter_up(const at::Tensor& x, const at::Tensor& filter, const UpFilter& up);
// The filter over x, every ratio-th sample.
at::Tensor filter_down(const at::Tensor& x, const at::Tensor& filter, const DownFilter& down);

// The Hann-windowed sinc of the skip beside the bandwidth extension; computed, no checkpoint has it.  [1, 1,
// 14 r + 1]
at::Tensor hann_sinc_filter(std::int64_t ratio);
// [batch, channels, n] -> [batch, channels, n · ratio]
at::Tensor hann_sinc_resample(const at::Tensor& x, std::int64_t ratio);

}  // namespace sluice::ltx2
