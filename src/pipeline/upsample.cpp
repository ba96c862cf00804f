#include "pipeline/upsample.h"

#include "kernels/scratch.h"
#include "models/ltx2/video_vae/latent_statistics.h"
#include "sampling/finite.h"
#include "sampling/latent_filters.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

namespace sluice::pipeline {

Latents upsample(const PreparedRun& run, Backends& backends, const Latents& latents) {
  c10::InferenceMode no_graph;
  const sampling::VideoLatentShape& from = run.settings.stages.front().video;
  const TwoStageRequest& request = *run.request.two_stage;
  const ltx2::VideoDecoder& decoder = *run.models.video_decoder;
  const weights::ParameterGroup* statistics = &decoder.statistics_group();
  auto statistics_source = backends.source(run.models.table(ltx2::ComponentKind::vae), {&statistics, 1});
  const auto lease = statistics_source->acquire(*statistics);
  const double scaling = decoder.config().scaling_factor;

  const at::Tensor small = ltx2::denormalize(
      decoder.statistics(), scaling, sampling::unpack_video(latents.video.narrow(1, 0, from.tokens()), from));
  const auto order = run.upsampler->model->groups();
  auto source = backends.source(run.upsampler->table, order);
  at::Tensor large = run.upsampler->model->forward(*source, small, run.settings.dtype);
  large = sampling::tone_map(sampling::adain(large, small, request.adain), request.tone_map);
  sampling::check_finite(large, "the upsampled latents");
  kernels::release_scratch();
  return {.video = sampling::pack_video(ltx2::normalize(decoder.statistics(), scaling, large)),
          .audio = latents.audio};
}

}  // namespace sluice::pipeline
