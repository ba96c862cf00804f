#pragma once
// The denoising loop: from noise to clean latents of both streams, one Euler step a sigma, guided in x0
// space. Source: the loop of diffusers' LTX2Pipeline.

#include "models/ltx2/connectors/connectors.h"
#include "models/ltx2/transformer/transformer.h"
#include "sampling/guidance.h"
#include "weights/weight_source.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

namespace sluice::pipeline {

struct Latents {     // packed and normalized, f32
  at::Tensor video;  // [1, tokens, channels]
  at::Tensor audio;
};

struct DenoiseSetup {
  std::vector<float> sigmas;    // steps + 1, the last one 0
  std::int64_t first_step = 0;  // those before it are done: the latents are given as they left them
  sampling::Guidance guidance;
  std::set<std::int64_t> stg_blocks;
  bool cross_timestep = true;
  at::ScalarType compute_dtype = at::ScalarType::Float;
};

struct Contexts {
  ltx2::TextContext positive;
  std::optional<ltx2::TextContext> negative;  // needed where guidance asks for it
};

struct DenoiseEvents {
  std::function<void(std::int64_t step, std::int64_t block)> after_block;  // may throw to stop
  std::function<void(std::int64_t step, const Latents&)> after_step;
};

// Error(non_finite) names stream and step (counted from 0) as soon as a latent is no finite number;
// after_step has then seen the latents of the step before.
Latents denoise(const ltx2::Transformer& transformer, weights::WeightSource& source,
                const ltx2::Positions& positions, const Contexts& contexts, const DenoiseSetup& setup,
                Latents start, const DenoiseEvents& events = {});

}  // namespace sluice::pipeline
