// sampling/*: schedules, one Euler step, guidance, packing, lengths.
#include "parity/registry.h"
#include "sampling/euler.h"
#include "sampling/guidance.h"
#include "sampling/latents.h"
#include "sampling/schedule.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace sluice::parity {
namespace {

using namespace sampling;

at::Tensor as_tensor(const std::vector<float>& values) {
  return at::tensor(at::ArrayRef<float>(values), at::TensorOptions().dtype(at::kFloat));
}

SchedulerConfig scheduler_of(const Case& parity_case) {
  return parse_scheduler_config(parity_case.config().dump());
}

// A given list does not depend on the number of tokens, unless the config shifts by it.
Results run_given_sigmas(const Case& parity_case) {
  const SchedulerConfig config = scheduler_of(parity_case);
  if (config.use_dynamic_shifting) throw MalformedCase("manifest: a list to shift needs 'token_counts'");
  const Schedule schedule = make_schedule(config, parity_case.param<std::vector<double>>("sigmas"), 1);
  Results results;
  results.add("sigmas", as_tensor(schedule.sigmas));
  results.add("timesteps", as_tensor(schedule.timesteps));
  return results;
}

Results run_shifted_sigmas(const Case& parity_case) {
  const SchedulerConfig config = scheduler_of(parity_case);
  const auto start = parity_case.has_param("sigmas")
                         ? parity_case.param<std::vector<double>>("sigmas")
                         : evenly_spaced_sigmas(parity_case.param<std::int64_t>("num_inference_steps"));
  std::vector<at::Tensor> sigmas, timesteps;
  for (std::int64_t tokens : parity_case.param<std::vector<std::int64_t>>("token_counts")) {
    const Schedule schedule = make_schedule(config, start, tokens);
    sigmas.push_back(as_tensor(schedule.sigmas));
    timesteps.push_back(as_tensor(schedule.timesteps));
  }
  Results results;
  results.add("sigmas", at::stack(sigmas));
  results.add("timesteps", at::stack(timesteps));
  return results;
}

Results run_sigmas(const Case& parity_case) {
  return parity_case.has_param("token_counts") ? run_shifted_sigmas(parity_case)
                                               : run_given_sigmas(parity_case);
}

Results run_euler_step(const Case& parity_case) {
  const Schedule schedule =
      make_schedule(scheduler_of(parity_case), parity_case.param<std::vector<double>>("sigmas"), 1);
  const auto index = parity_case.param<std::size_t>("step_index");
  const SigmaStep sigma{.from = schedule.sigmas.at(index), .to = schedule.sigmas.at(index + 1)};
  const at::Tensor& sample = parity_case.input("sample");
  const at::Tensor x0 = velocity_to_x0(sample, parity_case.input("velocity"), sigma.from);
  Results results;
  results.add("denoised", x0);
  results.add("velocity_again", x0_to_velocity(sample, x0, sigma.from));
  results.add("prev_sample", euler_step_to_x0(sample, x0, sigma));
  return results;
}

Results run_guidance(const Case& parity_case) {
  const GuidanceScales scales{.cfg = parity_case.param<double>("guidance_scale"),
                              .stg = parity_case.param<double>("stg_scale"),
                              .modality = parity_case.param<double>("modality_scale"),
                              .rescale = parity_case.param<double>("guidance_rescale")};
  const GuidancePasses passes = needed_passes({.video = scales, .audio = {}});
  const auto sigma = parity_case.param<float>("sigma");
  const at::Tensor& sample = parity_case.input("sample");
  auto x0 = [&](const char* velocity) { return velocity_to_x0(sample, parity_case.input(velocity), sigma); };
  const Denoised denoised{.positive = x0("velocity"),
                          .negative = passes.negative ? x0("velocity_negative") : at::Tensor(),
                          .perturbed = passes.perturbed ? x0("velocity_stg") : at::Tensor(),
                          .isolated = passes.isolated ? x0("velocity_modality") : at::Tensor()};
  const at::Tensor guided = guide(denoised, scales);
  Results results;
  results.add("guided", combine(denoised, scales));
  results.add("denoised", guided);
  results.add("velocity", x0_to_velocity(sample, guided, sigma));
  return results;
}

Results run_packing(const Case& parity_case) {
  if (parity_case.config_value<int>("patch_size") != 1 || parity_case.config_value<int>("patch_size_t") != 1)
    throw MalformedCase("config: LTX-2 has no patches larger than 1");
  const at::Tensor& video = parity_case.input("video");
  const at::Tensor& audio = parity_case.input("audio");
  const at::Tensor video_packed = pack_video(video), audio_packed = pack_audio(audio);
  Results results;
  results.add("video_packed", video_packed);
  results.add("audio_packed", audio_packed);
  results.claim(
      "video unpacked",
      at::equal(unpack_video(video_packed, {video.size(1), video.size(2), video.size(3), video.size(4)}),
                video),
      "unpacking does not give the video back");
  results.claim("audio unpacked",
                at::equal(unpack_audio(audio_packed, {audio.size(1), audio.size(2), audio.size(3)}), audio),
                "unpacking does not give the audio back");
  return results;
}

Results run_lengths(const Case& parity_case) {
  const AudioRate rate{.sample_rate = parity_case.config_value<std::int64_t>("sample_rate"),
                       .hop_length = parity_case.config_value<std::int64_t>("hop_length"),
                       .downsample = parity_case.config_value<std::int64_t>("audio_downsample")};
  const VideoCompression compression{.frames = parity_case.config_value<std::int64_t>("video_downsample")};
  const auto frames = parity_case.param<std::vector<std::int64_t>>("frames");
  const auto fps = parity_case.param<std::vector<double>>("fps");
  std::vector<std::int64_t> audio, video;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    audio.push_back(audio_latent_length(frames[i], fps.at(i), rate));
    video.push_back(latent_frames(frames[i], compression));
  }
  Results results;
  results.add("audio_latents", at::tensor(audio));
  results.add("video_latents", at::tensor(video));
  return results;
}

}  // namespace

void add_sampling(Registry& registry) {
  registry.add("sampling", "sigmas_", run_sigmas);
  registry.add("sampling", "euler_step", run_euler_step);
  registry.add("sampling", "guidance_", run_guidance);
  registry.add("sampling", "packing", run_packing);
  registry.add("sampling", "lengths", run_lengths);
}

}  // namespace sluice::parity
