#include "sampling/conditioning.h"

#include <ATen/ATen.h>

namespace sluice::sampling {

at::Tensor noised_start(const at::Tensor& start, const at::Tensor& noise, const at::Tensor& mask,
                        double level) {
  if (!mask.defined()) return noise * level + start * (1 - level);
  const at::Tensor share = (1 - mask) * level;
  return noise * share + start * (1 - share);
}

at::Tensor with_given(const at::Tensor& x, const Conditioning& conditioning) {
  if (!conditioning.defined()) return x;
  return x * (1 - conditioning.mask) + conditioning.clean * conditioning.mask;
}

at::Tensor token_timesteps(const at::Tensor& timestep, const at::Tensor& mask) {
  return timestep.view({-1, 1}) * (1 - mask.squeeze(-1));
}

}  // namespace sluice::sampling
