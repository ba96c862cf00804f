#include "parity/denoising.h"

#include "pipeline/stage_conditions.h"
#include "sampling/guidance.h"
#include "sampling/latents.h"
#include "sampling/schedule.h"
#include "support/fixture.h"

#include <sluice/checkpoint.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <set>
#include <vector>

namespace sluice::parity {
namespace {

using nlohmann::json;
using pipeline::FrameSource;
using pipeline::Latents;
using pipeline::PlannedFrames;

sampling::VideoCompression compression_of(const ltx2::TransformerConfig& config) {
  return {.frames = config.vae_scale[0], .pixels = config.vae_scale[1]};
}

void check_shape(const at::Tensor& tensor, at::IntArrayRef shape, const std::string& name) {
  if (tensor.sizes() != shape)
    throw MalformedCase(fmt::format("io: '{}' is {}, the params make it {}", name,
                                    format_shape(tensor.sizes()), format_shape(shape)));
}

// Values of an object in the params.
template <typename T>
T value(const json& object, const char* key) {
  try {
    return object.at(key).get<T>();
  } catch (const json::exception& problem) {
    throw MalformedCase(fmt::format("manifest: {}: {}", key, problem.what()));
  }
}

pipeline::Range range(const json& object, const char* key) {
  const auto bounds = value<std::array<std::int64_t, 2>>(object, key);
  return {bounds[0], bounds[1]};
}

// Frames that a case gives, and the inputs with their latents.
struct Given {
  std::vector<PlannedFrames> frames;
  std::vector<std::string> latents;
  std::string audio;  // "": none

  void add(PlannedFrames of, std::string from) {
    frames.push_back(std::move(of));
    latents.push_back(std::move(from));
  }
};

Given given_by(const Case& parity_case, std::int64_t frames_a_latent) {
  Given given;
  if (parity_case.has_param("image_latents"))
    given.add({.source = FrameSource::image}, parity_case.param<std::string>("image_latents"));
  for (const json& condition : parity_case.param_or("conditions", json::array())) {
    const auto index = value<std::int64_t>(condition, "latent_index");
    const auto count = value<std::int64_t>(condition, "pixel_frames");
    given.add({.source = count == 1 ? FrameSource::image : FrameSource::video,
               .frame = index == 0 ? 0 : frames_a_latent * (index - 1) + 1,
               .count = count,
               .strength = value<double>(condition, "strength")},
              value<std::string>(condition, "latents"));
  }
  if (parity_case.has_param("retake")) {
    const auto retake = parity_case.param<json>("retake");
    given.add({.source = FrameSource::video, .count = parity_case.param<std::int64_t>("num_frames")},
              value<std::string>(retake, "latents"));
    given.audio = value<std::string>(retake, "audio_latents");
  }
  for (const json& reference : parity_case.param_or("references", json::array())) {
    given.add({.source = FrameSource::reference,
               .count = value<std::int64_t>(reference, "pixel_frames"),
               .strength = value<double>(reference, "strength"),
               .downscale = parity_case.param<std::int64_t>("reference_downscale_factor")},
              value<std::string>(reference, "latents"));
  }
  if (parity_case.has_param("sound_latents")) given.audio = parity_case.param<std::string>("sound_latents");
  return given;
}

at::Tensor packed_sound(const Case& parity_case, const std::string& name) {
  return ltx2::normalize_packed(audio_statistics(parity_case), sampling::pack_audio(parity_case.input(name)));
}

pipeline::GivenLatents given_latents(const Case& parity_case, const DenoisingStage& stage,
                                     const sampling::VideoCompression& compression) {
  const Given given = given_by(parity_case, compression.frames);
  pipeline::GivenLatents latents;
  for (std::size_t i = 0; i < given.frames.size(); ++i) {
    const at::Tensor& tensor = parity_case.input(given.latents[i]);
    const auto shape = pipeline::latents_of(given.frames[i], stage.settings.video, compression);
    check_shape(tensor, {1, shape.channels, shape.frames, shape.height, shape.width}, given.latents[i]);
    latents.frames.push_back(ltx2::normalize(video_statistics(parity_case), kScalingFactor, tensor));
  }
  if (!given.audio.empty()) latents.audio = packed_sound(parity_case, given.audio);
  return latents;
}

sampling::GuidanceScales scales(const Case& parity_case, const std::string& prefix) {
  return {.cfg = parity_case.param<double>(prefix + "guidance_scale"),
          .stg = parity_case.param<double>(prefix + "stg_scale"),
          .modality = parity_case.param<double>(prefix + "modality_scale"),
          .rescale = parity_case.param<double>(prefix + "guidance_rescale")};
}

sampling::Schedule schedule_of(const Case& parity_case, std::int64_t tokens) {
  const auto start =
      parity_case.has_param("sigmas")
          ? parity_case.param<std::vector<double>>("sigmas")
          : sampling::evenly_spaced_sigmas(parity_case.param<std::int64_t>("num_inference_steps"));
  const auto scheduler = sampling::parse_scheduler_config(config_part(parity_case, "scheduler").dump());
  return sampling::make_schedule(scheduler, start, tokens);
}

// The two inputs that `noise_order` names, packed.
Latents noise_of(const Case& parity_case, const DenoisingStage& stage) {
  const auto names = parity_case.param<std::array<std::string, 2>>("noise_order");
  const at::Tensor &video = parity_case.input(names[0]), &audio = parity_case.input(names[1]);
  const Latents noise{.video = video.dim() == 5 ? sampling::pack_video(video) : video,
                      .audio = audio.dim() == 4 ? sampling::pack_audio(audio) : audio};
  check_shape(noise.video, {1, stage.settings.tokens(), stage.settings.video.channels}, names[0]);
  check_shape(noise.audio, {1, stage.audio.length, stage.audio.channels * stage.audio.mel_bins}, names[1]);
  return noise;
}

// What is to be refined: a stage's, or the case's own.
Latents refined_from(const Case& parity_case, const Latents& made) {
  Latents clean = made;
  if (parity_case.has_param("latents")) {
    const at::Tensor& given = parity_case.input(parity_case.param<std::string>("latents"));
    clean.video = sampling::pack_video(ltx2::normalize(video_statistics(parity_case), kScalingFactor, given));
  }
  if (parity_case.has_param("audio_latents"))
    clean.audio = packed_sound(parity_case, parity_case.param<std::string>("audio_latents"));
  return clean;
}

pipeline::DenoiseSetup setup_of(const Case& parity_case, const DenoisingStage& stage,
                                const pipeline::StageConditions& conditions) {
  pipeline::DenoiseSetup setup{.sigmas = stage.settings.schedule.sigmas,
                               .guidance = stage.settings.guidance,
                               .stg_blocks = stage.settings.stg_blocks,
                               .cross_timestep = parity_case.param_or("use_cross_timestep", true),
                               .video = conditions.video,
                               .audio = conditions.audio,
                               .frozen_audio = conditions.frozen_audio,
                               .video_self_mask = conditions.video_self_mask};
  if (conditions.frozen_audio) setup.perturbed_streams = ltx2::Modalities::video;
  const auto sampler = parity_case.param_or<std::string>("sampler", "euler");
  if (sampler == "euler_ancestral") {
    setup.sampler = Sampler::euler_ancestral;
    const at::Tensor &video = parity_case.input("step_noise_video"),
                     &audio = parity_case.input("step_noise_audio");
    setup.noise = [video, audio, step = std::int64_t{0}](std::size_t, pipeline::NoiseUse) mutable {
      const Latents noise{.video = video[step], .audio = audio[step]};
      ++step;
      return noise;
    };
  } else if (sampler != "euler") {
    throw MalformedCase("manifest: sampler: unknown '" + sampler + "'");
  }
  return setup;
}

pipeline::Contexts contexts_of(const Case& parity_case, DenoisingModels& models,
                               const sampling::Guidance& guidance) {
  auto context = [&](const std::string& which) {
    return ltx2::text_context(models.connectors, *models.connector_weights,
                              parity_case.input(which + "_embeds"),
                              parity_case.input(which + "_attention_mask"), at::kFloat);
  };
  pipeline::Contexts contexts{.positive = context("prompt")};
  if (sampling::needed_passes(guidance).negative) contexts.negative = context("negative_prompt");
  return contexts;
}

void claim_schedule(const Case& parity_case, const sampling::Schedule& schedule, const std::string& prefix,
                    Results& results) {
  const at::Tensor used = at::tensor(at::ArrayRef<float>(schedule.sigmas)),
                   wanted = at::tensor(parity_case.param<std::vector<double>>("sigmas_used"));
  const auto same = test::all_close(used, wanted, {.atol = 2e-6});
  results.claim(prefix + "sigmas_used", static_cast<bool>(same), same.message());
}

}  // namespace

ltx2::LatentStatistics video_statistics(const Case& parity_case) {
  return {.mean = parity_case.input("video_latents_mean"), .std = parity_case.input("video_latents_std")};
}

ltx2::AudioLatentStatistics audio_statistics(const Case& parity_case) {
  return {.mean = parity_case.input("audio_latents_mean"), .std = parity_case.input("audio_latents_std")};
}

const json& config_part(const Case& parity_case, const char* name) {
  auto found = parity_case.config().find(name);
  if (found == parity_case.config().end())
    throw MalformedCase(fmt::format("manifest: the config has no '{}'", name));
  return *found;
}

DenoisingModels::DenoisingModels(const Case& parity_case)
    : transformer(ltx2::TransformerConfig::parse(config_part(parity_case, "transformer"), "transformer")),
      connectors(ltx2::ConnectorsConfig::parse(config_part(parity_case, "connectors"), "connectors")),
      transformer_weights(test::open_weights(parity_case.weights("transformer"), transformer.groups())),
      connector_weights(test::open_weights(parity_case.weights("connectors"), connectors.groups())) {}

DenoisingStage denoising_stage(const Case& parity_case, const ltx2::TransformerConfig& config) {
  const auto frames = parity_case.param<std::int64_t>("num_frames");
  const auto fps = parity_case.param<double>("frame_rate");
  const auto channels = parity_case.param<std::int64_t>("latent_channels");
  const sampling::VideoCompression compression = compression_of(config);
  const sampling::AudioRate rate{.sample_rate = config.audio_sampling_rate,
                                 .hop_length = config.audio_hop_length,
                                 .downsample = config.audio_scale};
  DenoisingStage stage;
  stage.settings.video = {.channels = config.video.in_channels,
                          .frames = sampling::latent_frames(frames, compression),
                          .height = parity_case.param<std::int64_t>("height") / compression.pixels,
                          .width = parity_case.param<std::int64_t>("width") / compression.pixels};
  stage.settings.fps = fps;
  stage.audio = {.channels = channels,
                 .length = sampling::audio_latent_length(frames, fps, rate),
                 .mel_bins = config.audio.in_channels / channels};
  stage.plan.frames = given_by(parity_case, compression.frames).frames;
  stage.plan.sound = parity_case.has_param("sound_latents");
  if (parity_case.has_param("retake")) {
    const auto retake = parity_case.param<json>("retake");
    stage.plan.retaken_video = range(retake, "video");
    stage.plan.retaken_audio = range(retake, "audio");
  }
  stage.reference_attention = parity_case.param_or("conditioning_attention_strength", 1.0);
  stage.settings.tokens_beside = stage.plan.tokens_beside(stage.settings.video, compression);
  stage.settings.schedule = schedule_of(parity_case, stage.settings.tokens());
  stage.settings.guidance = {.video = scales(parity_case, ""), .audio = scales(parity_case, "audio_")};
  stage.settings.stg_blocks =
      parity_case.param_or("spatio_temporal_guidance_blocks", std::set<std::int64_t>());
  return stage;
}

Latents run_denoising(const Case& parity_case, DenoisingModels& models, const DenoisingStage& stage,
                      const Latents& made, const std::string& prefix, Results& results) {
  const ltx2::TransformerConfig& config = models.transformer.config();
  const pipeline::LayoutInputs layout{.transformer = config,
                                      .plan = stage.plan,
                                      .stage = stage.settings,
                                      .audio = stage.audio,
                                      .fps = stage.settings.fps,
                                      .reference_attention = stage.reference_attention};
  const pipeline::StageConditions conditions =
      pipeline::lay_out(layout, given_latents(parity_case, stage, compression_of(config)));
  const double level = parity_case.param_or("noise_scale", 1.0);
  const Latents start =
      pipeline::stage_start(conditions, noise_of(parity_case, stage), refined_from(parity_case, made), level);
  pipeline::DenoiseEvents events;
  events.after_step = [&](std::int64_t step, const std::vector<Latents>& clips) {
    results.add(fmt::format("{}step_{}.video", prefix, step), clips.front().video);
    results.add(fmt::format("{}step_{}.audio", prefix, step), clips.front().audio);
  };
  claim_schedule(parity_case, stage.settings.schedule, prefix, results);
  return pipeline::denoise(models.transformer, *models.transformer_weights,
                           pipeline::stage_positions(layout, conditions, models.transformer.modalities()),
                           contexts_of(parity_case, models, stage.settings.guidance),
                           setup_of(parity_case, stage, conditions), {start}, events)
      .front();
}

void add_clean(const Case& parity_case, const DenoisingStage& stage, const Latents& clean, Results& results) {
  const sampling::VideoLatentShape& video = stage.settings.video;
  results.add("video_latents",
              ltx2::denormalize(video_statistics(parity_case), kScalingFactor,
                                sampling::unpack_video(clean.video.narrow(1, 0, video.tokens()), video)));
  results.add("audio_latents",
              sampling::unpack_audio(ltx2::denormalize_packed(audio_statistics(parity_case), clean.audio),
                                     stage.audio));
}

}  // namespace sluice::parity
