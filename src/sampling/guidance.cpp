#include "sampling/guidance.h"

#include <ATen/ATen.h>

#include <vector>

namespace sluice::sampling {
namespace {

at::Tensor row_std(const at::Tensor& x) {
  std::vector<std::int64_t> all_but_batch;
  for (std::int64_t i = 1; i < x.dim(); ++i) all_but_batch.push_back(i);
  return at::std(x, all_but_batch, at::Scalar(1), /*keepdim=*/true);
}

}  // namespace

GuidancePasses needed_passes(const Guidance& guidance) {
  const GuidanceScales& video = guidance.video;
  const GuidanceScales& audio = guidance.audio;
  return {.negative = video.cfg > 1.0 || audio.cfg > 1.0,
          .perturbed = video.stg > 0.0 || audio.stg > 0.0,
          .isolated = video.modality > 1.0 || audio.modality > 1.0};
}

at::Tensor combine(const Denoised& x0, const GuidanceScales& scales) {
  at::Tensor guided = x0.positive;
  auto push_away = [&](const at::Tensor& worse, double scale) {
    if (worse.defined()) guided = (x0.positive - worse).mul_(scale).add_(guided);
  };
  push_away(x0.negative, scales.cfg - 1.0);
  push_away(x0.perturbed, scales.stg);
  push_away(x0.isolated, scales.modality - 1.0);
  return guided;
}

at::Tensor rescale_to(const at::Tensor& positive, const at::Tensor& guided, double rescale) {
  const at::Tensor factor = row_std(positive) / row_std(guided);  // [batch, 1, …]
  return (guided * factor).mul_(rescale).add_(guided * (1.0 - rescale));
}

at::Tensor guide(const Denoised& x0, const GuidanceScales& scales) {
  const at::Tensor guided = combine(x0, scales);
  return scales.rescale > 0.0 ? rescale_to(x0.positive, guided, scales.rescale) : guided;
}

}  // namespace sluice::sampling
