#pragma once
// The denoising loop: from noise to clean latents of both streams, one step a sigma, guided in x0 space.
// Several clips go through a step together, so that one reading of the weights serves them all; each is
// computed by itself, so that its numbers are those of a run of its own.  Source: the loops of diffusers'
// LTX2Pipeline and LTX2ConditionPipeline.

#include "models/ltx2/connectors/connectors.h"
#include "models/ltx2/transformer/transformer.h"
#include "sampling/conditioning.h"
#include "sampling/guidance.h"
#include "weights/weight_source.h"

#include <sluice/sluice.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

namespace sluice::pipeline {

struct Latents {     // packed and normalized, f32; undefined where a stream is left out
  at::Tensor video;  // [1, tokens, channels]: the grid's, then those of given frames beside it
  at::Tensor audio;
};

enum class NoiseUse { step, middle };  // behind a step, or in the middle of one

struct DenoiseSetup {
  std::vector<float> sigmas;    // steps + 1, the last one 0
  std::int64_t first_step = 0;  // those before it are done: the latents are given as they left them
  Sampler sampler = Sampler::euler;
  sampling::Guidance guidance;
  std::set<std::int64_t> stg_blocks;
  ltx2::Modalities perturbed_streams = ltx2::Modalities::both;  // by the passes of --stg
  bool cross_timestep = true;
  std::vector<std::int64_t> adapter_ranks;  // of each adapter beside the weights, its highest
  at::ScalarType compute_dtype = at::ScalarType::Float;

  sampling::Conditioning video, audio;
  // The sound is given whole: it takes no step, and the model is told that it is clean (timestep and sigma
  // 0).
  bool frozen_audio = false;
  at::Tensor video_self_mask;  // [1, tokens, tokens] in [0, 1]: who sees whom; undefined: everybody
  // Standard normal numbers for both streams of a clip, for samplers that add noise: called once a step for
  // each use that the sampler has, but for an ancestral one's last step.
  std::function<Latents(std::size_t clip, NoiseUse use)> noise;
};

struct Contexts {
  ltx2::TextContext positive;
  std::optional<ltx2::TextContext> negative;  // needed where guidance asks for it
};

struct DenoiseEvents {
  std::function<void(std::int64_t step, std::int64_t block)> after_block;  // may throw to stop
  std::function<void(std::int64_t step, const std::vector<Latents>& clips)> after_step;
};

// Error(non_finite) names stream and step (counted from 0) as soon as a latent is no finite number;
// after_step has then seen the latents of the step before.
std::vector<Latents> denoise(const ltx2::Transformer& transformer, weights::WeightSource& source,
                             const ltx2::Positions& positions, const Contexts& contexts,
                             const DenoiseSetup& setup, std::vector<Latents> start,
                             const DenoiseEvents& events = {});

}  // namespace sluice::pipeline
