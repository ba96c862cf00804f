#pragma once
// Guidance in x0 space: how strongly a prediction is pushed away from three worse ones.  Video and audio have
// scales of their own but share the forward passes.  Source: the denoising loop of diffusers' LTX2Pipeline;
// unlike there, an explicit 0 for an audio scale is 0 and not the video's value.

#include <ATen/core/Tensor.h>

namespace sluice::sampling {

struct GuidanceScales {
  double cfg = 1.0;       // 1: off; away from the negative prompt (classifier-free guidance)
  double stg = 0.0;       // 0: off; away from perturbed self-attention (spatio-temporal guidance)
  double modality = 1.0;  // 1: off; away from the modality on its own
  double rescale = 0.0;   // 0: off; how far the standard deviation returns to the positive prediction's
};

struct Guidance {
  GuidanceScales video;
  GuidanceScales audio;
};

// The forward passes of one step beside the one with the positive prompt.
struct GuidancePasses {
  bool negative = false;   // negative prompt: cfg > 1
  bool perturbed = false;  // self-attention of the STG blocks gives its values: stg > 0
  bool isolated = false;   // no attention between video and audio: modality > 1

  int forward_passes() const { return 1 + negative + perturbed + isolated; }
};

GuidancePasses needed_passes(const Guidance& guidance);  // a pass runs if either modality needs it

// Predictions of x0, f32 [batch, tokens, channels]; undefined where the pass did not run.
struct Denoised {
  at::Tensor positive;
  at::Tensor negative;
  at::Tensor perturbed;
  at::Tensor isolated;
};

// g = p + (cfg - 1)(p - negative) + stg (p - perturbed) + (modality - 1)(p - isolated); a term whose
// prediction is undefined is left out.
at::Tensor combine(const Denoised& x0, const GuidanceScales& scales);

// rescale · g · std(p) / std(g) + (1 - rescale) · g; standard deviations unbiased (n - 1), of each batch row
// over all tokens and channels.  "Common Diffusion Noise Schedules and Sample Steps are Flawed", section 3.4.
at::Tensor rescale_to(const at::Tensor& positive, const at::Tensor& guided, double rescale);

// combine(), and rescale_to() where scales.rescale > 0.
at::Tensor guide(const Denoised& x0, const GuidanceScales& scales);

}  // namespace sluice::sampling
