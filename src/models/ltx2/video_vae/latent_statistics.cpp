#include "models/ltx2/video_vae/latent_statistics.h"

#include <ATen/ATen.h>

namespace sluice::ltx2 {
namespace {

at::Tensor per_channel(const at::Tensor& values, const at::Tensor& latents) {
  return values.to(latents.scalar_type()).view({1, -1, 1, 1, 1});
}

}  // namespace

at::Tensor normalize(const LatentStatistics& statistics, double scaling_factor, const at::Tensor& latents) {
  at::Tensor centred = latents - per_channel(statistics.mean, latents);
  return centred * scaling_factor / per_channel(statistics.std, latents);
}

at::Tensor denormalize(const LatentStatistics& statistics, double scaling_factor, const at::Tensor& latents) {
  return latents * per_channel(statistics.std, latents) / scaling_factor +
         per_channel(statistics.mean, latents);
}

}  // namespace sluice::ltx2
