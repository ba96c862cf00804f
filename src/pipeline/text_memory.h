#pragma once
// What a text phase needs, from configs, tables and the lengths of the prompts alone.

#include "models/ltx2/connectors/state_columns.h"
#include "pipeline/model_set.h"

#include <sluice/units.h>

#include <ATen/core/ScalarType.h>

#include <cstdint>
#include <vector>

namespace sluice::pipeline {

struct TextShape {
  std::vector<std::int64_t> tokens;  // real ones, of each prompt
  at::ScalarType dtype = at::kBFloat16;
  int threads = 1;
  ltx2::FeatureLimits limits;
};

// Tensors that exist at once in each part of the phase, the most; beside them are the weights (slots, what
// stays) and `scratch`.
struct TextMemory {
  Bytes encoder = 0;  // 0 without a text encoder: every prompt is injected
  Bytes projections = 0;
  Bytes connectors = 0;
  Bytes scratch = 0;  // of products, and rows of projections that are widened
  // How often the projections are read.  Once: when the text encoder and its weights are gone.  Else while
  // they are still there, so that the memory for both components' weights is taken at once.
  std::int64_t projection_passes = 1;

  bool in_turn() const { return projection_passes == 1; }
  Bytes most() const;  // tensors and scratch
};

TextMemory text_memory(const ModelSet& models, const TextEncoder* encoder, const TextShape& shape);

// Bytes of weights that a phase reads where nothing but the slots of the last read is kept: each layer of the
// text encoder once for all prompts, of its embeddings the prompts' rows, the connectors once, the
// projections once a pass.
Bytes text_bytes_read(const ModelSet& models, const TextEncoder* encoder, const TextShape& shape);

}  // namespace sluice::pipeline
