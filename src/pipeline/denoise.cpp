#include "pipeline/denoise.h"

#include "pipeline/denoise_memory.h"
#include "pipeline/sampler_steps.h"
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

// The passes of a clip and which prediction each one is.
struct PassIndex {
  // Behind the positive pass, 0: does not run.
  std::size_t negative = 0, perturbed = 0, isolated = 0;
  std::size_t count = 1;

  explicit PassIndex(const sampling::GuidancePasses& needed) {
    if (needed.negative) negative = count++;
    if (needed.perturbed) perturbed = count++;
    if (needed.isolated) isolated = count++;
  }
};

at::Tensor mask_or_none(const at::Tensor& mask) {
  // A mask of ones changes nothing and would cost a pass over all scores.
  return mask.defined() && at::any(mask != 1).item<bool>() ? mask : at::Tensor();
}

class DenoiseLoop {
 public:
  DenoiseLoop(const ltx2::Transformer& transformer, weights::WeightSource& source,
              const ltx2::Positions& positions, const Contexts& contexts, const DenoiseSetup& setup)
      : transformer_(transformer),
        source_(source),
        positions_(positions),
        contexts_(contexts),
        setup_(setup),
        index_(sampling::needed_passes(setup.guidance)) {}

  void reserve(const std::vector<Latents>& clips) {
    const Latents& x = clips.front();
    const DenoiseShape shape{.video_tokens = x.video.defined() ? x.video.size(1) : 0,
                             .audio_tokens = x.audio.defined() ? x.audio.size(1) : 0,
                             .text_tokens = contexts_.positive.video_text.size(1),
                             .passes = static_cast<int>(index_.count * clips.size()),
                             .timesteps = timesteps(),
                             .adapter_ranks = setup_.adapter_ranks,
                             .dtype = setup_.compute_dtype,
                             .threads = at::get_num_threads()};
    workspace_.reserve(denoise_memory(transformer_.config(), shape).workspace());
  }

  // x0 of every clip at a sigma: guided, with what is given in its place.
  std::vector<Latents> predict(const std::vector<Latents>& clips, float sigma,
                               const ltx2::Transformer::BlockObserver& observer) {
    std::vector<ltx2::Pass> passes;
    for (const Latents& x : clips) add_passes(x, sigma, passes);
    const kernels::Workspace::Scope scope(workspace_);
    const auto velocities = transformer_.forward(source_, positions_, passes, workspace_, observer);
    std::vector<Latents> predictions;
    for (std::size_t clip = 0; clip < clips.size(); ++clip) {
      const Latents& x = clips[clip];
      const auto* own = velocities.data() + clip * index_.count;
      Latents& x0 = predictions.emplace_back();
      if (x.video.defined()) {
        x0.video = guided(x.video, own, &ltx2::Streams::video, setup_.guidance.video, sigma);
        x0.video = with_given(x0.video, setup_.video);
      }
      if (x.audio.defined() && !setup_.frozen_audio) {
        x0.audio = guided(x.audio, own, &ltx2::Streams::audio, setup_.guidance.audio, sigma);
        x0.audio = with_given(x0.audio, setup_.audio);
      }
    }
    return predictions;
  }

 private:
  // Distinct values among those of tokens, at most.
  std::int64_t timesteps() const {
    std::int64_t most = 1;
    for (const at::Tensor& mask : {setup_.video.mask, setup_.audio.mask})
      if (mask.defined()) most = std::max(most, std::get<0>(at::_unique2(mask)).numel());
    return most;
  }

  ltx2::Pass pass_with(const Latents& x, const ltx2::TextContext& text, float sigma) const {
    const at::Tensor time =
        at::full({1}, static_cast<double>(sigma), at::TensorOptions().dtype(at::kFloat)) * kTimestepScale;
    const at::Tensor mask = mask_or_none(text.mask);
    auto stream = [&](const at::Tensor& latents, const at::Tensor& context, const at::Tensor& given) {
      if (!latents.defined()) return ltx2::StreamInput{};
      return ltx2::StreamInput{.latents = latents.to(setup_.compute_dtype),
                               .text = context.to(setup_.compute_dtype),
                               .text_mask = mask,
                               .timestep = given.defined() ? sampling::token_timesteps(time, given) : time,
                               .sigma = time};
    };
    ltx2::Pass pass{.video = stream(x.video, text.video_text, setup_.video.mask),
                    .audio = stream(x.audio, text.audio_text, setup_.audio.mask),
                    .cross_timestep = setup_.cross_timestep};
    pass.video.self_mask = setup_.video_self_mask;
    if (setup_.frozen_audio) pass.audio.timestep = pass.audio.sigma = at::zeros_like(time);
    return pass;
  }

  void add_passes(const Latents& x, float sigma, std::vector<ltx2::Pass>& passes) const {
    const ltx2::Pass positive = pass_with(x, contexts_.positive, sigma);
    passes.push_back(positive);
    if (index_.negative) {
      if (!contexts_.negative) throw Error(ErrorKind::internal, "guidance without a negative context");
      passes.push_back(pass_with(x, *contexts_.negative, sigma));
    }
    if (index_.perturbed) {
      passes.push_back(positive);
      passes.back().perturbed_blocks = setup_.stg_blocks;
      passes.back().perturbed_streams = setup_.perturbed_streams;
    }
    if (index_.isolated) {
      passes.push_back(positive);
      passes.back().isolate_modalities = true;
    }
  }

  at::Tensor guided(const at::Tensor& x, const ltx2::Streams* velocities, at::Tensor ltx2::Streams::*stream,
                    const sampling::GuidanceScales& scales, float sigma) const {
    auto x0 = [&](std::size_t pass) {
      return sampling::velocity_to_x0(x, (velocities[pass].*stream).to(at::kFloat), sigma);
    };
    sampling::Denoised predictions{.positive = x0(0)};
    if (index_.negative) predictions.negative = x0(index_.negative);
    if (index_.perturbed) predictions.perturbed = x0(index_.perturbed);
    if (index_.isolated) predictions.isolated = x0(index_.isolated);
    return sampling::guide(predictions, scales);
  }

  const ltx2::Transformer& transformer_;
  weights::WeightSource& source_;
  const ltx2::Positions& positions_;
  const Contexts& contexts_;
  const DenoiseSetup& setup_;
  const PassIndex index_;
  kernels::Workspace workspace_;
};

void check(const std::vector<Latents>& clips, std::int64_t step, std::int64_t steps) {
  for (const Latents& x : clips) {
    if (x.video.defined())
      sampling::check_finite(x.video, fmt::format("video latents after step {} of {}", step, steps));
    if (x.audio.defined())
      sampling::check_finite(x.audio, fmt::format("audio latents after step {} of {}", step, steps));
  }
}

}  // namespace

std::vector<Latents> denoise(const ltx2::Transformer& transformer, weights::WeightSource& source,
                             const ltx2::Positions& positions, const Contexts& contexts,
                             const DenoiseSetup& setup, std::vector<Latents> clips,
                             const DenoiseEvents& events) {
  c10::InferenceMode no_graph;
  const auto steps = static_cast<std::int64_t>(setup.sigmas.size()) - 1;
  DenoiseLoop loop(transformer, source, positions, contexts, setup);
  loop.reserve(clips);
  for (std::int64_t k = setup.first_step; k < steps; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const Predict predict = [&](const std::vector<Latents>& at, float sigma) {
      return loop.predict(at, sigma, [&](std::int64_t block, const auto&) {
        if (events.after_block) events.after_block(k, block);
      });
    };
    clips = sampler_step(clips, predict, setup, setup.sigmas[i], setup.sigmas[i + 1]);
    check(clips, k, steps);
    if (events.after_step) events.after_step(k, clips);
  }
  return clips;
}

}  // namespace sluice::pipeline
