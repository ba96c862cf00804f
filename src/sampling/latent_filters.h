#pragma once
// Filters between the two stages of a generation, on denormalised latents [B, C, F, H, W], f32.  Source:
// LTX2LatentUpsamplePipeline of diffusers 0.42.1.

#include <ATen/core/Tensor.h>

namespace sluice::sampling {

// Each channel of `latents` moved towards the mean and (unbiased) standard deviation of the same channel of
// `reference`, over frames and space: lerp(x, (x - mean_x) / std_x · std_r + mean_r, factor).  Where std_x is
// 0 (a constant channel) or a side is a single place, only the mean moves (the reference divides by zero
// there).  Statistics are f64.  0 changes nothing.
at::Tensor adain(const at::Tensor& latents, const at::Tensor& reference, double factor);

// Brings large values in: x · (1 - 0.8 q · sigmoid(4 q (|x| - 1))), q = 0.75 · ratio; ratio in [0, 1].
at::Tensor tone_map(const at::Tensor& latents, double ratio);

}  // namespace sluice::sampling
