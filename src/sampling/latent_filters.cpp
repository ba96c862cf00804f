#include "sampling/latent_filters.h"

#include <ATen/ATen.h>

#include <cmath>

namespace sluice::sampling {
namespace {

struct Statistics {
  double mean = 0, std = 0;
};

// In f64 the mean of a constant channel is its value to the bit, so that its deviation is exactly 0.  Of a
// single place there is none: NaN.
Statistics statistics_of(const at::Tensor& channel) {
  const at::Tensor values = channel.to(at::kDouble);
  const double mean = values.mean().item<double>();
  const double squares = (values - mean).square_().sum().item<double>();
  return {mean, std::sqrt(squares / static_cast<double>(values.numel() - 1))};
}

// Of one channel, [F, H, W]; f64 as long as it is one channel's.
at::Tensor moved(const at::Tensor& channel, const at::Tensor& reference) {
  const Statistics own = statistics_of(channel), wanted = statistics_of(reference);
  const double ratio = wanted.std / own.std;
  return (channel.to(at::kDouble) - own.mean).mul_(std::isfinite(ratio) ? ratio : 1).add_(wanted.mean);
}

}  // namespace

at::Tensor adain(const at::Tensor& latents, const at::Tensor& reference, double factor) {
  at::Tensor result = latents.clone();
  if (factor == 0) return result;
  for (std::int64_t batch = 0; batch < latents.size(0); ++batch) {
    for (std::int64_t c = 0; c < latents.size(1); ++c) {
      const at::Tensor channel = latents[batch][c];
      result[batch][c].copy_(at::lerp(channel.to(at::kDouble), moved(channel, reference[batch][c]), factor));
    }
  }
  return result;
}

at::Tensor tone_map(const at::Tensor& latents, double ratio) {
  const double strength = 0.75 * ratio;
  const at::Tensor large = latents.abs().sub_(1).mul_(4 * strength).sigmoid_();  // near 1 where values are
  return latents * (1 - large * (0.8 * strength));
}

}  // namespace sluice::sampling
