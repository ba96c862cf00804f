#pragma once
// What is given, laid out over the tokens of a stage: which are given and how far, where those beside the
// grid lie, who sees whom.  Pure functions of latents.

#include "models/ltx2/transformer/positions.h"
#include "pipeline/denoise.h"
#include "pipeline/settings.h"
#include "sampling/conditioning.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sluice::pipeline {

struct GivenLatents {              // normalized, f32
  std::vector<at::Tensor> frames;  // as ConditionPlan::frames, [1, C, f, h, w]
  at::Tensor audio;                // packed [1, L, channels]; undefined: none is given
};

struct StageConditions {
  sampling::Conditioning video, audio;
  bool frozen_audio = false;
  at::Tensor coordinates_beside;  // [1, 3, tokens, 2], of the tokens behind the grid; undefined: none
  at::Tensor video_self_mask;     // [1, tokens, tokens]; undefined: everybody sees everybody
};

struct LayoutInputs {
  const ltx2::TransformerConfig& transformer;
  const ConditionPlan& plan;
  const StageSettings& stage;
  const sampling::AudioLatentShape& audio;
  double fps = 24;
  double reference_attention = 1.0;
};

StageConditions lay_out(const LayoutInputs& inputs, const GivenLatents& given);

// Latents as a stage begins.  `noise`: packed, of all tokens.  `clean`: what an earlier stage made, packed
// and normalized, without tokens beside the grid; undefined: nothing.  `level`: the sigma that the stage
// begins at.
Latents stage_start(const StageConditions& conditions, const Latents& noise, const Latents& clean,
                    double level);

// Positions of a stage's tokens.
ltx2::Positions stage_positions(const LayoutInputs& inputs, const StageConditions& conditions,
                                ltx2::Modalities modalities);

}  // namespace sluice::pipeline
