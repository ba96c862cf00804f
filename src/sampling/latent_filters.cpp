#include "sampling/latent_filters.h"

#include <ATen/ATen.h>

namespace sluice::sampling {
namespace {

struct Statistics {  // [batch, channels, 1, 1, 1], f64
  at::Tensor mean, std;
};

// In f64 the mean of a constant channel is its value to the bit, so that its deviation is exactly 0.  Of a
// single place there is none: NaN.
Statistics statistics_of(const at::Tensor& x) {
  const at::Tensor values = x.to(at::kDouble);
  const at::Tensor mean = values.mean({2, 3, 4}, /*keepdim=*/true);
  const auto places = static_cast<double>(values.size(2) * values.size(3) * values.size(4));
  const at::Tensor squares = (values - mean).square_().sum({2, 3, 4}, /*keepdim=*/true);
  return {mean, squares.div_(places - 1).sqrt_()};
}

}  // namespace

at::Tensor adain(const at::Tensor& latents, const at::Tensor& reference, double factor) {
  if (factor == 0) return latents.clone();
  const Statistics own = statistics_of(latents), wanted = statistics_of(reference);
  const at::Tensor ratio = wanted.std / own.std;
  const at::Tensor gain = at::where(ratio.isfinite(), ratio, at::ones_like(ratio));
  const at::Tensor moved = (latents - own.mean) * gain + wanted.mean;
  return at::lerp(latents.to(at::kDouble), moved, factor).to(latents.scalar_type());
}

at::Tensor tone_map(const at::Tensor& latents, double ratio) {
  const double strength = 0.75 * ratio;
  const at::Tensor large = latents.abs().sub_(1).mul_(4 * strength).sigmoid_();  // near 1 where values are
  return latents * (1 - large * (0.8 * strength));
}

}  // namespace sluice::sampling
