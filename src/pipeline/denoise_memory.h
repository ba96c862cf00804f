#pragma once
// Tensors of the denoising loop that exist at once, counted from shapes: what block_forward() and its callers
// take from the workspace at the moment they have most of it.

#include "models/ltx2/transformer/config.h"

#include <sluice/units.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sluice::pipeline {

struct DenoiseShape {
  std::int64_t video_tokens = 0;  // 0: the stream is left out
  std::int64_t audio_tokens = 0;
  std::int64_t text_tokens = 0;
  int contexts = 1;                              // prompts: positive, and negative with guidance
  int passes = 1;                                // of all clips that go through a step together
  std::int64_t timesteps = 1;                    // distinct ones among those of a stream's tokens
  bool video_mask = false;                       // who sees whom among the video's tokens
  std::vector<std::int64_t> adapter_ranks = {};  // of each adapter, its highest
  at::ScalarType dtype = at::kBFloat16;
  int threads = 1;
};

struct DenoiseMemory {
  Bytes contexts = 0;  // for the whole phase: what the prompts became, rotary tables, the mask
  // Of a step's workspace, which is taken once:
  Bytes streams = 0;  // of every pass: streams, their modulation, velocities
  Bytes block = 0;    // beside that, inside a block
  Bytes scratch = 0;  // of products and attention, within its limits

  Bytes workspace() const { return streams + block + scratch; }
};

DenoiseMemory denoise_memory(const ltx2::TransformerConfig& config, const DenoiseShape& shape);

}  // namespace sluice::pipeline
