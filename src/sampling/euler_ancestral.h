#pragma once
// One ancestral Euler step of rectified flow: down further than the next sigma, and noise on top.  f32.

#include "sampling/euler.h"

#include <ATen/core/Tensor.h>

namespace sluice::sampling {

struct AncestralOptions {
  double eta = 1.0;      // 0: the plain Euler step
  double s_noise = 1.0;  // factor on the noise
};

// From a (guided) prediction of x0.  `noise`: standard normal of the sample's shape; not looked at where
// sigma.to is 0 or eta is 0.
at::Tensor ancestral_step_to_x0(const at::Tensor& sample, const at::Tensor& x0, const at::Tensor& noise,
                                SigmaStep sigma, const AncestralOptions& options = {});

}  // namespace sluice::sampling
