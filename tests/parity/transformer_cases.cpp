// transformer/*: one forward pass of the audio-video transformer, with the streams after each block.
#include "models/ltx2/transformer/transformer.h"
#include "parity/registry.h"
#include "support/fixture.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <set>

namespace sluice::parity {
namespace {

at::Tensor first_defined(const at::Tensor& first, const at::Tensor& second) {
  return first.defined() ? first : second;
}

// A missing input or parameter means the reference's default: the audio follows the video's timestep and
// sigma, and sigma is the timestep.
ltx2::Pass pass_of(const Case& parity_case) {
  const at::Tensor& timestep = parity_case.input("timestep");
  const at::Tensor sigma = first_defined(parity_case.optional_input("sigma"), timestep);
  ltx2::Pass pass;
  pass.video = {.latents = parity_case.input("hidden_states"),
                .text = parity_case.input("encoder_hidden_states"),
                .text_mask = parity_case.optional_input("encoder_attention_mask"),
                .timestep = timestep,
                .sigma = sigma,
                .self_mask = parity_case.optional_input("video_self_attention_mask")};
  pass.audio = {.latents = parity_case.input("audio_hidden_states"),
                .text = parity_case.input("audio_encoder_hidden_states"),
                .text_mask = parity_case.optional_input("audio_encoder_attention_mask"),
                .timestep = first_defined(parity_case.optional_input("audio_timestep"), timestep),
                .sigma = first_defined(parity_case.optional_input("audio_sigma"), sigma)};
  pass.keyframe_mask = parity_case.optional_input("video_keyframes_mask");
  pass.cross_timestep = parity_case.param_or("use_cross_timestep", false);
  pass.isolate_modalities = parity_case.param_or("isolate_modalities", false);
  pass.perturbed_blocks = parity_case.param_or("spatio_temporal_guidance_blocks", std::set<std::int64_t>());
  pass.perturbation_mask = parity_case.optional_input("perturbation_mask");
  return pass;
}

Results run_transformer(const Case& parity_case) {
  const ltx2::Transformer model(
      ltx2::TransformerConfig::parse(parity_case.config(), parity_case.manifest().full_name()));
  const ltx2::VideoGrid grid{.frames = parity_case.param<std::int64_t>("num_frames"),
                             .height = parity_case.param<std::int64_t>("height"),
                             .width = parity_case.param<std::int64_t>("width")};
  const ltx2::Positions positions = ltx2::make_positions(
      model.config(), ltx2::video_coordinates(model.config(), grid, parity_case.param<double>("fps")),
      ltx2::audio_coordinates(model.config(), parity_case.param<std::int64_t>("audio_num_frames")));
  const auto source = test::open_weights(parity_case.weights(), model.groups());

  Results results;
  const auto keep_streams = [&](std::int64_t block, const std::vector<ltx2::Streams>& streams) {
    results.add(fmt::format("block_{}.video", block), streams[0].video.clone());
    results.add(fmt::format("block_{}.audio", block), streams[0].audio.clone());
  };
  const auto velocities = model.forward(*source, positions, {pass_of(parity_case)}, keep_streams);
  results.add("sample", velocities[0].video);
  results.add("audio_sample", velocities[0].audio);
  return results;
}

}  // namespace

void add_transformer(Registry& registry) {
  registry.add("transformer", "", run_transformer);
}

}  // namespace sluice::parity
