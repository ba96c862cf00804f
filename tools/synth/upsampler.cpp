#include "synth/upsampler.h"

#include "models/ltx2/upsampler/upsampler.h"
#include "nn/config_reader.h"

#include <algorithm>
#include <utility>

namespace sluice::synth {
namespace {

constexpr std::int64_t kNormGroups = 32;
constexpr const char* kComponent = "latent_upsampler";

nlohmann::json published_config(const UpsamplerSizes& sizes) {
  return {{"_class_name", "LatentUpsampler"},
          {"in_channels", sizes.channels},
          {"mid_channels", sizes.width},
          {"num_blocks_per_stage", sizes.blocks},
          {"dims", 3},
          {"spatial_upsample", sizes.spatial},
          {"temporal_upsample", sizes.temporal},
          {"spatial_scale", 2.0},
          {"rational_resampler", false}};
}

}  // namespace

UpsamplerSizes upsampler_sizes(std::int64_t channels) {
  if (channels == UpsamplerSizes{}.channels) return {};
  const std::int64_t width = (channels + kNormGroups - 1) / kNormGroups * kNormGroups;
  return {.channels = channels, .width = width, .blocks = 1};
}

std::int64_t latent_channels(const Sizes& sizes) {
  return nn::ConfigReader(sizes.config.at("vae"), "vae").count("latent_channels");
}

Plan plan_upsampler(const std::filesystem::path& file, const UpsamplerSizes& sizes,
                    const PlanOptions& options) {
  const nlohmann::json config = published_config(sizes);
  const ltx2::LatentUpsampler model(ltx2::UpsamplerConfig::parse(config, kComponent));
  PlannedFile planned{file, {}, {{"config", config.dump()}, {"model_version", options.model_version}}};
  for (const weights::ParameterGroup* group : model.groups()) {
    for (const weights::Parameter& parameter : group->parameters)
      planned.tensors.push_back(
          {parameter.name, kComponent, {parameter.name, parameter.shape}, options.dtype});
  }
  std::ranges::sort(planned.tensors, {}, &PlannedTensor::name);
  Plan plan;
  plan.files.push_back(std::move(planned));
  return plan;
}

}  // namespace sluice::synth
