#pragma once
// One Euler step of flow matching, and the way between the model's velocity v = noise - x0 and the clean
// sample x0. All tensors f32 of one shape; latents stay f32 between steps.  Source:
// FlowMatchEulerDiscreteScheduler.step, convert_velocity_to_x0 and convert_x0_to_velocity of diffusers'
// LTX2Pipeline.

#include <ATen/core/Tensor.h>

namespace sluice::sampling {

at::Tensor velocity_to_x0(const at::Tensor& sample, const at::Tensor& velocity,
                          float sigma);                                                  // x - v · sigma
at::Tensor x0_to_velocity(const at::Tensor& sample, const at::Tensor& x0, float sigma);  // (x - x0) / sigma

struct SigmaStep {
  float from = 0.0f;  // the sigma of `sample`; > 0
  float to = 0.0f;
};

// x + (to - from) · v
at::Tensor euler_step(const at::Tensor& sample, const at::Tensor& velocity, SigmaStep sigma);

// The step from a (guided) prediction of x0: goes through the velocity, as the reference does also without
// guidance.
at::Tensor euler_step_to_x0(const at::Tensor& sample, const at::Tensor& x0, SigmaStep sigma);

}  // namespace sluice::sampling
