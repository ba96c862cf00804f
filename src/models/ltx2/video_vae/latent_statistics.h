#pragma once
// Latents as the transformer sees them (normalised) and as the autoencoder and the latent upsampler see them.

#include <ATen/core/Tensor.h>

namespace sluice::ltx2 {

struct LatentStatistics {
  at::Tensor mean;  // [latent_channels]
  at::Tensor std;   // [latent_channels]
};

// latents: [batch, latent_channels, frames, height, width].  Statistics are cast to the latents' dtype first.
at::Tensor normalize(const LatentStatistics& statistics, double scaling_factor, const at::Tensor& latents);
at::Tensor denormalize(const LatentStatistics& statistics, double scaling_factor, const at::Tensor& latents);

}  // namespace sluice::ltx2
