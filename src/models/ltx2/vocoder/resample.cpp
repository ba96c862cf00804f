#include "models/ltx2/vocoder/resample.h"

#include "kernels/conv_line.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::ltx2 {
namespace {

constexpr double kRolloff = 0.99;
constexpr double kZeroCrossings = 6;
constexpr std::int64_t kWidth = 7;  // ceil(6 / 0.99) samples on either side

}  // namespace

at::Tensor hann_sinc_filter(std::int64_t ratio) {
  const std::int64_t taps = 2 * kWidth * ratio + 1;
  at::Tensor filter = at::empty({1, 1, taps}, at::kFloat);
  float* out = filter.data_ptr<float>();
  for (std::int64_t i = 0; i < taps; i++) {
    const double t =
        (static_cast<double>(i) / static_cast<double>(ratio) - static_cast<double>(kWidth)) * kRolloff;
    const double clamped = std::clamp(t, -kZeroCrossings, kZeroCrossings);
    const double root = std::cos(clamped * std::numbers::pi / kZeroCrossings / 2);
    const double x = t * std::numbers::pi;
    const double sinc = t == 0 ? 1 : std::sin(x) / x;
    out[i] = static_cast<float>(sinc * root * root * kRolloff / static_cast<double>(ratio));
  }
  return filter;
}

// Zeros between the samples, the filter over them: a transposed convolution of each channel.  Its first
// result is the one that the filter's middle weights the first sample into; zeros behind the filter make room
// for the last ones.
at::Tensor hann_sinc_resample(const at::Tensor& x, std::int64_t ratio) {
  const at::Tensor padded = at::replication_pad1d(x, {kWidth, kWidth}).contiguous();
  const at::Tensor taps =
      at::constant_pad_nd(hann_sinc_filter(ratio).mul_(static_cast<double>(ratio)), {0, ratio - 1});
  const kernels::LineConv conv = {
      .weights = {.values = {.values = static_cast<const std::byte*>(taps.const_data_ptr())},
                  .out = 1,
                  .in = 1,
                  .taps = taps.size(2),
                  .transposed = true},
      .stride = ratio,
      .padding = 2 * kWidth * ratio};
  at::Tensor y = at::empty({x.size(0), x.size(1), x.size(2) * ratio}, x.options());
  for (std::int64_t wave = 0; wave < x.size(0) * x.size(1); wave++)
    kernels::conv_line(conv, {.rows = padded.size(2), .x = padded.data_ptr<float>() + wave * padded.size(2)},
                       {.y = y.data_ptr<float>() + wave * y.size(2)});
  return y;
}

}  // namespace sluice::ltx2
