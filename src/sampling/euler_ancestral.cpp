#include "sampling/euler_ancestral.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sluice::sampling {
namespace {

struct Factors {  // of what makes the next sample
  double sample = 0, x0 = 0, noise = 0;
};

// Down to sigma `down`, below the next one, as an Euler step; then both parts shrink so that with the noise
// on top the sample stands at sigma.to again.
Factors factors_of(SigmaStep sigma, const AncestralOptions& options) {
  const double from = sigma.from, to = sigma.to;
  const double down = to * (1 + (to / from - 1) * options.eta);
  const double shrink = options.eta > 0 ? (1 - to) / (1 - down) : 1;
  const double noise = std::sqrt(std::max(to * to - down * down * shrink * shrink, 0.0));
  return {shrink * down / from, shrink * (1 - down / from), options.eta > 0 ? noise * options.s_noise : 0};
}

}  // namespace

at::Tensor ancestral_step_to_x0(const at::Tensor& sample, const at::Tensor& x0, const at::Tensor& noise,
                                SigmaStep sigma, const AncestralOptions& options) {
  if (sigma.to == 0) return x0.clone();
  const Factors factors = factors_of(sigma, options);
  at::Tensor next = (sample * factors.sample).add_(x0, factors.x0);
  if (options.eta > 0) next.add_(noise, factors.noise);
  return next;
}

}  // namespace sluice::sampling
