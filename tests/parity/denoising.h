#pragma once
// One denoising loop of a case of `pipeline`, run as the program runs a stage: what the case's params give is
// planned, laid out over the tokens and denoised by the program's own functions.

#include "models/ltx2/audio_vae/decoder.h"
#include "models/ltx2/connectors/connectors.h"
#include "models/ltx2/transformer/transformer.h"
#include "models/ltx2/video_vae/latent_statistics.h"
#include "parity/case.h"
#include "parity/results.h"
#include "pipeline/denoise.h"
#include "pipeline/settings.h"

#include <memory>
#include <string>

namespace sluice::parity {

constexpr double kScalingFactor = 1.0;  // the pipeline cases' statistics are all there is

ltx2::LatentStatistics video_statistics(const Case& parity_case);
ltx2::AudioLatentStatistics audio_statistics(const Case& parity_case);

const nlohmann::json& config_part(const Case& parity_case, const char* name);

struct DenoisingModels {
  explicit DenoisingModels(const Case& parity_case);

  ltx2::Transformer transformer;
  ltx2::Connectors connectors;
  std::unique_ptr<weights::WeightSource> transformer_weights, connector_weights;
};

// What a case's params are, settled; of a part of a case with two stages, one stage.
struct DenoisingStage {
  pipeline::StageSettings settings;
  sampling::AudioLatentShape audio;
  pipeline::ConditionPlan plan;
  double reference_attention = 1.0;
};

DenoisingStage denoising_stage(const Case& parity_case, const ltx2::TransformerConfig& config);

// Adds `prefix`step_<i>.video and .audio to the results.  `made`: by a stage before, packed and normalized;
// undefined: there is none.
pipeline::Latents run_denoising(const Case& parity_case, DenoisingModels& models, const DenoisingStage& stage,
                                const pipeline::Latents& made, const std::string& prefix, Results& results);

// video_latents and audio_latents, unpacked and denormalized.
void add_clean(const Case& parity_case, const DenoisingStage& stage, const pipeline::Latents& clean,
               Results& results);

}  // namespace sluice::parity
