#pragma once
// One step of each sampler, for all clips of a run, over a model that is only a function here.

#include "pipeline/denoise.h"

#include <functional>
#include <vector>

namespace sluice::pipeline {

// x0 of every clip at a sigma, with what is given in its place; a stream that takes no step is undefined.
using Predict = std::function<std::vector<Latents>(const std::vector<Latents>& clips, float sigma)>;

// From sigma `from` to `to`, which is 0 in the last step.
std::vector<Latents> sampler_step(const std::vector<Latents>& clips, const Predict& predict,
                                  const DenoiseSetup& setup, float from, float to);

// Evaluations of the model in so many steps, each over all weights.
std::int64_t evaluations(Sampler sampler, std::int64_t steps);

}  // namespace sluice::pipeline
