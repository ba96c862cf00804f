// pipeline/text_*: whole denoising loops from prompt embeddings and noise to clean latents.
#include "models/ltx2/audio_vae/decoder.h"
#include "models/ltx2/connectors/connectors.h"
#include "models/ltx2/transformer/transformer.h"
#include "models/ltx2/video_vae/latent_statistics.h"
#include "parity/registry.h"
#include "pipeline/denoise.h"
#include "sampling/guidance.h"
#include "sampling/latents.h"
#include "sampling/noise.h"
#include "sampling/schedule.h"
#include "support/fixture.h"

#include <sluice/checkpoint.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <set>
#include <vector>

namespace sluice::parity {
namespace {

using pipeline::Latents;

struct Models {
  explicit Models(const Case& parity_case)
      : transformer(ltx2::TransformerConfig::parse(part(parity_case, "transformer"), "transformer")),
        connectors(ltx2::ConnectorsConfig::parse(part(parity_case, "connectors"), "connectors")),
        transformer_weights(test::open_weights(parity_case.weights("transformer"), transformer.groups())),
        connector_weights(test::open_weights(parity_case.weights("connectors"), connectors.groups())) {}

  static const nlohmann::json& part(const Case& parity_case, const char* name) {
    auto found = parity_case.config().find(name);
    if (found == parity_case.config().end())
      throw MalformedCase(fmt::format("manifest: the config has no '{}'", name));
    return *found;
  }

  ltx2::Transformer transformer;
  ltx2::Connectors connectors;
  std::unique_ptr<weights::WeightSource> transformer_weights, connector_weights;
};

struct Shapes {
  sampling::VideoLatentShape video;
  sampling::AudioLatentShape audio;
};

Shapes shapes_of(const Case& parity_case, const ltx2::TransformerConfig& config) {
  const auto frames = parity_case.param<std::int64_t>("num_frames");
  const auto channels = parity_case.param<std::int64_t>("latent_channels");
  const sampling::AudioRate rate{.sample_rate = config.audio_sampling_rate,
                                 .hop_length = config.audio_hop_length,
                                 .downsample = config.audio_scale};
  return {.video = {.channels = config.video.in_channels,
                    .frames = sampling::latent_frames(frames, {.frames = config.vae_scale[0]}),
                    .height = parity_case.param<std::int64_t>("height") / config.vae_scale[1],
                    .width = parity_case.param<std::int64_t>("width") / config.vae_scale[2]},
          .audio = {
              .channels = channels,
              .length = sampling::audio_latent_length(frames, parity_case.param<double>("frame_rate"), rate),
              .mel_bins = config.audio.in_channels / channels}};
}

void check_shape(const at::Tensor& tensor, at::IntArrayRef shape, const char* name) {
  if (tensor.sizes() != shape)
    throw MalformedCase(fmt::format("io: '{}' is {}, the params make it {}", name,
                                    format_shape(tensor.sizes()), format_shape(shape)));
}

constexpr double kScalingFactor = 1.0;  // the pipeline cases' statistics are all there is

ltx2::LatentStatistics video_statistics(const Case& parity_case) {
  return {.mean = parity_case.input("video_latents_mean"), .std = parity_case.input("video_latents_std")};
}

ltx2::AudioLatentStatistics audio_statistics(const Case& parity_case) {
  return {.mean = parity_case.input("audio_latents_mean"), .std = parity_case.input("audio_latents_std")};
}

// Pure noise, or given latents brought back to a noise level.
Latents start_of(const Case& parity_case, const Shapes& shapes) {
  const at::Tensor& video = parity_case.input("video_noise");
  const at::Tensor& audio = parity_case.input("audio_noise");
  const auto& [channels, frames, height, width] = shapes.video;
  check_shape(video, {video.size(0), channels, frames, height, width}, "video_noise");
  check_shape(audio, {video.size(0), shapes.audio.channels, shapes.audio.length, shapes.audio.mel_bins},
              "audio_noise");
  Latents x{.video = sampling::pack_video(video), .audio = sampling::pack_audio(audio)};
  const auto level = parity_case.param_or("noise_scale", 0.0);
  if (parity_case.has_param("latents")) {
    const at::Tensor& given = parity_case.input(parity_case.param<std::string>("latents"));
    const at::Tensor clean = ltx2::normalize(video_statistics(parity_case), kScalingFactor, given);
    x.video = sampling::add_noise(sampling::pack_video(clean), x.video, level);
  }
  if (parity_case.has_param("audio_latents")) {
    const at::Tensor& given = parity_case.input(parity_case.param<std::string>("audio_latents"));
    const at::Tensor clean =
        ltx2::normalize_packed(audio_statistics(parity_case), sampling::pack_audio(given));
    x.audio = sampling::add_noise(clean, x.audio, level);
  }
  return x;
}

sampling::GuidanceScales scales(const Case& parity_case, const std::string& prefix) {
  return {.cfg = parity_case.param<double>(prefix + "guidance_scale"),
          .stg = parity_case.param<double>(prefix + "stg_scale"),
          .modality = parity_case.param<double>(prefix + "modality_scale"),
          .rescale = parity_case.param<double>(prefix + "guidance_rescale")};
}

pipeline::DenoiseSetup setup_of(const Case& parity_case, const Shapes& shapes) {
  const auto start =
      parity_case.has_param("sigmas")
          ? parity_case.param<std::vector<double>>("sigmas")
          : sampling::evenly_spaced_sigmas(parity_case.param<std::int64_t>("num_inference_steps"));
  const auto scheduler = sampling::parse_scheduler_config(Models::part(parity_case, "scheduler").dump());
  return {.sigmas = sampling::make_schedule(scheduler, start, shapes.video.tokens()).sigmas,
          .guidance = {.video = scales(parity_case, ""), .audio = scales(parity_case, "audio_")},
          .stg_blocks = parity_case.param_or("spatio_temporal_guidance_blocks", std::set<std::int64_t>()),
          .cross_timestep = parity_case.param_or("use_cross_timestep", true)};
}

pipeline::Contexts contexts_of(const Case& parity_case, Models& models, const sampling::Guidance& guidance) {
  auto context = [&](const std::string& which) {
    return ltx2::text_context(models.connectors, *models.connector_weights,
                              parity_case.input(which + "_embeds"),
                              parity_case.input(which + "_attention_mask"), at::kFloat);
  };
  pipeline::Contexts contexts{.positive = context("prompt")};
  if (sampling::needed_passes(guidance).negative) contexts.negative = context("negative_prompt");
  return contexts;
}

Results run_text(const Case& parity_case) {
  Models models(parity_case);
  const ltx2::TransformerConfig& config = models.transformer.config();
  const Shapes shapes = shapes_of(parity_case, config);
  const pipeline::DenoiseSetup setup = setup_of(parity_case, shapes);
  const ltx2::VideoGrid grid{shapes.video.frames, shapes.video.height, shapes.video.width};
  const ltx2::Positions positions = ltx2::make_positions(
      config, ltx2::video_coordinates(config, grid, parity_case.param<double>("frame_rate")),
      ltx2::audio_coordinates(config, shapes.audio.length));

  Results results;
  const auto keep_step = [&](std::int64_t step, const Latents& latents) {
    results.add(fmt::format("step_{}.video", step), latents.video);
    results.add(fmt::format("step_{}.audio", step), latents.audio);
  };
  const Latents clean = pipeline::denoise(models.transformer, *models.transformer_weights, positions,
                                          contexts_of(parity_case, models, setup.guidance), setup,
                                          start_of(parity_case, shapes), {.after_step = keep_step});
  results.add("video_latents", ltx2::denormalize(video_statistics(parity_case), kScalingFactor,
                                                 sampling::unpack_video(clean.video, shapes.video)));
  results.add("audio_latents",
              sampling::unpack_audio(ltx2::denormalize_packed(audio_statistics(parity_case), clean.audio),
                                     shapes.audio));
  const at::Tensor used = at::tensor(at::ArrayRef<float>(setup.sigmas)),
                   wanted = at::tensor(parity_case.param<std::vector<double>>("sigmas_used"));
  const auto same = test::all_close(used, wanted, {.atol = 2e-6});
  results.claim("sigmas_used", static_cast<bool>(same), same.message());
  return results;
}

}  // namespace

void add_pipeline(Registry& registry) {
  registry.add("pipeline", "text_", run_text);
}

}  // namespace sluice::parity
