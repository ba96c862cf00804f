#include "pipeline/denoise.h"

#include "pipeline/denoise_memory.h"
#include "sampling/euler.h"
#include "sampling/finite.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

namespace sluice::pipeline {
namespace {

constexpr double kTimestepScale = 1000;  // the model takes sigma · 1000

// The passes of a step and which prediction each one is.
struct StepPasses {
  std::vector<ltx2::Pass> passes;
  std::size_t negative = 0, perturbed = 0,
              isolated = 0;  // index, 0: does not run (the positive pass is number 0)
};

at::Tensor mask_or_none(const at::Tensor& mask) {
  // A mask of ones changes nothing and would cost a pass over all scores.
  return mask.defined() && at::any(mask != 1).item<bool>() ? mask : at::Tensor();
}

ltx2::Pass pass_with(const Latents& x, const ltx2::TextContext& text, const DenoiseSetup& setup,
                     float sigma) {
  at::Tensor timestep =
      at::full({1}, static_cast<double>(sigma), at::TensorOptions().dtype(at::kFloat)) * kTimestepScale;
  at::Tensor mask = mask_or_none(text.mask);
  auto stream = [&](const at::Tensor& latents, const at::Tensor& context) {
    return ltx2::StreamInput{.latents = latents.to(setup.compute_dtype),
                             .text = context.to(setup.compute_dtype),
                             .text_mask = mask,
                             .timestep = timestep,
                             .sigma = timestep};
  };
  return {.video = stream(x.video, text.video_text),
          .audio = stream(x.audio, text.audio_text),
          .cross_timestep = setup.cross_timestep};
}

StepPasses passes_of(const Latents& x, const Contexts& contexts, const DenoiseSetup& setup, float sigma) {
  const sampling::GuidancePasses needed = sampling::needed_passes(setup.guidance);
  const ltx2::Pass positive = pass_with(x, contexts.positive, setup, sigma);
  StepPasses step{.passes = {positive}};
  if (needed.negative) {
    if (!contexts.negative) throw Error(ErrorKind::internal, "guidance without a negative context");
    step.negative = step.passes.size();
    step.passes.push_back(pass_with(x, *contexts.negative, setup, sigma));
  }
  if (needed.perturbed) {
    step.perturbed = step.passes.size();
    step.passes.push_back(positive);
    step.passes.back().perturbed_blocks = setup.stg_blocks;
  }
  if (needed.isolated) {
    step.isolated = step.passes.size();
    step.passes.push_back(positive);
    step.passes.back().isolate_modalities = true;
  }
  return step;
}

// One stream of all predictions to the next latents.
at::Tensor advance(const at::Tensor& x, const std::vector<ltx2::Streams>& velocities,
                   at::Tensor ltx2::Streams::*stream, const StepPasses& step,
                   const sampling::GuidanceScales& scales, sampling::SigmaStep sigma) {
  auto x0 = [&](std::size_t pass) {
    return sampling::velocity_to_x0(x, (velocities[pass].*stream).to(at::kFloat), sigma.from);
  };
  sampling::Denoised predictions{.positive = x0(0)};
  if (step.negative) predictions.negative = x0(step.negative);
  if (step.perturbed) predictions.perturbed = x0(step.perturbed);
  if (step.isolated) predictions.isolated = x0(step.isolated);
  return sampling::euler_step_to_x0(x, sampling::guide(predictions, scales), sigma);
}

Bytes workspace_of(const ltx2::TransformerConfig& config, const Latents& x, const Contexts& contexts,
                   const DenoiseSetup& setup) {
  const DenoiseShape shape{.video_tokens = x.video.size(1),
                           .audio_tokens = x.audio.size(1),
                           .text_tokens = contexts.positive.video_text.size(1),
                           .passes = sampling::needed_passes(setup.guidance).forward_passes(),
                           .dtype = setup.compute_dtype,
                           .threads = at::get_num_threads()};
  return denoise_memory(config, shape).workspace();
}

}  // namespace

Latents denoise(const ltx2::Transformer& transformer, weights::WeightSource& source,
                const ltx2::Positions& positions, const Contexts& contexts, const DenoiseSetup& setup,
                Latents x, const DenoiseEvents& events) {
  c10::InferenceMode no_graph;
  const auto steps = static_cast<std::int64_t>(setup.sigmas.size()) - 1;
  kernels::Workspace workspace;
  workspace.reserve(workspace_of(transformer.config(), x, contexts, setup));
  for (std::int64_t k = setup.first_step; k < steps; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const sampling::SigmaStep sigma{.from = setup.sigmas[i], .to = setup.sigmas[i + 1]};
    const StepPasses step = passes_of(x, contexts, setup, sigma.from);
    auto observer = [&](std::int64_t block, const std::vector<ltx2::Streams>&) {
      if (events.after_block) events.after_block(k, block);
    };
    const kernels::Workspace::Scope scope(workspace);
    const auto velocities = transformer.forward(source, positions, step.passes, workspace, observer);
    x = {.video = advance(x.video, velocities, &ltx2::Streams::video, step, setup.guidance.video, sigma),
         .audio = advance(x.audio, velocities, &ltx2::Streams::audio, step, setup.guidance.audio, sigma)};
    sampling::check_finite(x.video, fmt::format("video latents after step {} of {}", k, steps));
    sampling::check_finite(x.audio, fmt::format("audio latents after step {} of {}", k, steps));
    if (events.after_step) events.after_step(k, x);
  }
  return x;
}

}  // namespace sluice::pipeline
