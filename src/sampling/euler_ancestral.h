#pragma once
// One ancestral Euler step of rectified flow: down further than the next sigma, and noise on top.  f32.
// With  d = to · (1 + (to / from - 1) · eta),  a = (1 - to) / (1 - d):
//
//   x' = a · (d / from · x + (1 - d / from) · x0) + sqrt(to² - d² a²) · s_noise · noise
//
// Source: LTXEulerAncestralRFScheduler of diffusers 0.42.1.

#include "sampling/euler.h"

#include <ATen/core/Tensor.h>

namespace sluice::sampling {

struct AncestralOptions {
  double eta = 1.0;      // 0: the plain Euler step
  double s_noise = 1.0;  // factor on the noise
};

// From a (guided) prediction of x0.  `noise`: standard normal of the sample's shape; not looked at where
// sigma.to is 0 or eta is 0.  Conditioned tokens get noise too: the caller puts their clean values back.
at::Tensor ancestral_step_to_x0(const at::Tensor& sample, const at::Tensor& x0, const at::Tensor& noise,
                                SigmaStep sigma, const AncestralOptions& options = {});

}  // namespace sluice::sampling
