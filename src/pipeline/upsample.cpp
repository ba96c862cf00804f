#include "pipeline/upsample.h"

#include "kernels/scratch.h"
#include "sampling/finite.h"
#include "sampling/latent_filters.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

namespace sluice::pipeline {

Latents upsample(const UpsampleInputs& inputs, const Latents& latents) {
  c10::InferenceMode no_graph;
  const at::Tensor grid = latents.video.narrow(1, 0, inputs.from.tokens());
  const at::Tensor small =
      ltx2::denormalize(inputs.statistics, inputs.scaling_factor, sampling::unpack_video(grid, inputs.from));
  at::Tensor large = inputs.model.forward(inputs.source, small, inputs.dtype);
  large = sampling::tone_map(sampling::adain(large, small, inputs.adain), inputs.tone_map);
  sampling::check_finite(large, "the upsampled latents");
  kernels::release_scratch();
  return {.video = sampling::pack_video(ltx2::normalize(inputs.statistics, inputs.scaling_factor, large)),
          .audio = latents.audio};
}

Latents upsample(const PreparedRun& run, Backends& backends, const Latents& latents) {
  const ltx2::VideoDecoder& decoder = *run.models.video_decoder;
  const weights::ParameterGroup* statistics = &decoder.statistics_group();
  auto statistics_source = backends.source(run.models.table(ltx2::ComponentKind::vae), {&statistics, 1});
  const auto lease = statistics_source->acquire(*statistics);
  const auto order = run.upsampler->model->groups();
  auto source = backends.source(run.upsampler->table, order);
  return upsample({.model = *run.upsampler->model,
                   .source = *source,
                   .statistics = decoder.statistics(),
                   .scaling_factor = decoder.config().scaling_factor,
                   .from = run.settings.stages.front().video,
                   .adain = run.request.two_stage->adain,
                   .tone_map = run.request.two_stage->tone_map,
                   .dtype = run.settings.dtype},
                  latents);
}

}  // namespace sluice::pipeline
