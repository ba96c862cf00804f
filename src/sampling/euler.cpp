#include "sampling/euler.h"

#include <ATen/ATen.h>

namespace sluice::sampling {

// Product and sum are rounded one after the other, as in the reference: at::add with a factor would fuse
// them.

at::Tensor velocity_to_x0(const at::Tensor& sample, const at::Tensor& velocity, float sigma) {
  return sample - velocity * sigma;
}

at::Tensor x0_to_velocity(const at::Tensor& sample, const at::Tensor& x0, float sigma) {
  return (sample - x0).div_(sigma);
}

at::Tensor euler_step(const at::Tensor& sample, const at::Tensor& velocity, SigmaStep sigma) {
  return (velocity * (sigma.to - sigma.from)).add_(sample);
}

at::Tensor euler_step_to_x0(const at::Tensor& sample, const at::Tensor& x0, SigmaStep sigma) {
  return euler_step(sample, x0_to_velocity(sample, x0, sigma.from), sigma);
}

}  // namespace sluice::sampling
