// pipeline/*: whole denoising loops from prompt embeddings, noise and what is given to clean latents.
#include "models/ltx2/upsampler/upsampler.h"
#include "parity/denoising.h"
#include "parity/registry.h"
#include "pipeline/upsample.h"
#include "support/fixture.h"

namespace sluice::parity {
namespace {

using pipeline::Latents;

Results run_one_stage(const Case& parity_case) {
  DenoisingModels models(parity_case);
  const DenoisingStage stage = denoising_stage(parity_case, models.transformer.config());
  Results results;
  add_clean(parity_case, stage, run_denoising(parity_case, models, stage, {}, "", results), results);
  return results;
}

// `upsampled`: what the second stage refines, packed and normalized.
Results run_two_stages(const Case& parity_case) {
  DenoisingModels models(parity_case);
  const ltx2::LatentUpsampler upsampler(
      ltx2::UpsamplerConfig::parse(config_part(parity_case, "upsampler"), "upsampler"));
  const auto upsampler_weights = test::open_weights(parity_case.weights("upsampler"), upsampler.groups(),
                                                    ltx2::LatentUpsampler::ignore_rules(upsampler.config()));
  const Case first = parity_case.part("stage_1"), second = parity_case.part("stage_2");
  const DenoisingStage small = denoising_stage(first, models.transformer.config());
  const DenoisingStage large = denoising_stage(second, models.transformer.config());

  Results results;
  const Latents draft = run_denoising(first, models, small, {}, "stage_1.", results);
  const Latents refined =
      pipeline::upsample({.model = upsampler,
                          .source = *upsampler_weights,
                          .statistics = video_statistics(parity_case),
                          .scaling_factor = kScalingFactor,
                          .from = small.settings.video,
                          .adain = parity_case.param<double>("adain_factor"),
                          .tone_map = parity_case.param<double>("tone_map_compression_ratio")},
                         draft);
  results.add("upsampled", refined.video);
  add_clean(second, large, run_denoising(second, models, large, refined, "stage_2.", results), results);
  return results;
}

}  // namespace

void add_pipeline(Registry& registry) {
  for (const char* kind :
       {"text_", "image_", "conditions_", "references_", "sound_", "ancestral_", "retake_"})
    registry.add("pipeline", kind, run_one_stage);
  registry.add("pipeline", "two_stage_", run_two_stages);
}

}  // namespace sluice::parity
