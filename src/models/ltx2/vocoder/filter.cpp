#include "models/ltx2/vocoder/filter.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::ltx2 {
namespace {

constexpr double kRolloff = 0.99;
constexpr double kZeroCrossings = 6;
constexpr std::int64_t kWidth = 7;  // ceil(6 / 0.99) samples on either side

at::Tensor for_each_channel(const at::Tensor& filter, std::int64_t channels) {
  return filter.to(at::kFloat).expand({channels, 1, filter.size(2)});
}

}  // namespace

at::Tensor filter_up(const at::Tensor& x, const at::Tensor& filter, const UpFilter& up) {
  const std::int64_t channels = x.size(1);
  at::Tensor padded = at::replication_pad1d(x, {up.pad, up.pad});
  at::Tensor taps = for_each_channel(filter, channels) * static_cast<double>(up.ratio);
  at::Tensor y =
      at::conv_transpose1d(padded, taps, /*bias=*/{}, up.ratio, /*padding=*/0, /*output_padding=*/0,
                           /*groups=*/channels);
  return y.narrow(2, up.cut_left, y.size(2) - up.cut_left - up.cut_right);
}

at::Tensor filter_down(const at::Tensor& x, const at::Tensor& filter, const DownFilter& down) {
  const std::int64_t channels = x.size(1);
  at::Tensor padded = at::replication_pad1d(x, {down.pad_left, down.pad_right});
  return at::conv1d(padded, for_each_channel(filter, channels), /*bias=*/{}, down.ratio,
                    /*padding=*/at::IntArrayRef{0},
                    /*dilation=*/1, /*groups=*/channels);
}

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

at::Tensor hann_sinc_resample(const at::Tensor& x, std::int64_t ratio) {
  const std::int64_t reach = 2 * kWidth * ratio;
  return filter_up(x, hann_sinc_filter(ratio),
                   {.ratio = ratio, .pad = kWidth, .cut_left = reach, .cut_right = reach + 1 - ratio});
}

}  // namespace sluice::ltx2
