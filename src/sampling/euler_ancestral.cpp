#include "sampling/euler_ancestral.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sluice::sampling {
namespace {

// Down to a sigma below the next one, as an Euler step; then the sample shrinks, so that with noise on top it
// stands at the next one.  In f32 as the reference has it: near sigma 1 the noise is a small difference of
// large squares, whose rounding shows.
struct Parts {
  float ratio = 0;  // of the sample in the Euler step; the rest is x0
  float shrink = 1, noise = 0;
};

Parts parts_of(SigmaStep sigma, const AncestralOptions& options) {
  const float down = sigma.to * (1 + (sigma.to / sigma.from - 1) * static_cast<float>(options.eta));
  Parts parts{.ratio = down / sigma.from};
  if (options.eta == 0) return parts;
  const float clean = 1 - sigma.to, clean_down = 1 - down;
  parts.shrink = clean / clean_down;
  const float kept = down * down * (clean * clean) / (clean_down * clean_down);
  parts.noise = std::sqrt(std::max(sigma.to * sigma.to - kept, 0.0F));
  return parts;
}

}  // namespace

at::Tensor ancestral_step_to_x0(const at::Tensor& sample, const at::Tensor& x0, const at::Tensor& noise,
                                SigmaStep sigma, const AncestralOptions& options) {
  if (sigma.to == 0) return x0.clone();
  const Parts parts = parts_of(sigma, options);
  at::Tensor next = (sample * parts.ratio).add_(x0 * (1 - parts.ratio));
  if (options.eta > 0)
    next.mul_(parts.shrink).add_(noise * static_cast<float>(options.s_noise) * parts.noise);
  return next;
}

}  // namespace sluice::sampling
