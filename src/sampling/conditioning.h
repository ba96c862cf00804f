#pragma once
// Tokens of a stream that are given instead of made: wholly (mask 1: they stay clean), or in part (mask s:
// they sit at noise level (1 - s) · sigma and are drawn to what is given).  All tensors f32.  Source:
// prepare_latents and the denoising loop of diffusers' LTX2ConditionPipeline.

#include <ATen/core/Tensor.h>

namespace sluice::sampling {

struct Conditioning {
  at::Tensor mask;   // [1, tokens, 1] in [0, 1]; undefined: nothing is given
  at::Tensor clean;  // [1, tokens, channels]; where the mask is 0 it does not matter

  bool defined() const { return mask.defined(); }
};

// noise · a + start · (1 - a) with a = (1 - mask) · level: where a stream begins.  `start`: what is given,
// and elsewhere what is to be refined from `level` on (anything at level 1).  An undefined mask is 0.
at::Tensor noised_start(const at::Tensor& start, const at::Tensor& noise, const at::Tensor& mask,
                        double level);

// A prediction (or latents) with what is given in its place: x · (1 - mask) + clean · mask.
at::Tensor with_given(const at::Tensor& x, const Conditioning& conditioning);

// timestep · (1 - mask) of each token, [1, tokens].
at::Tensor token_timesteps(const at::Tensor& timestep, const at::Tensor& mask);

}  // namespace sluice::sampling
