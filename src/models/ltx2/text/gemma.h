#pragma once
// The Gemma 3 text model as an encoder: token ids to the states between its layers.  Follows transformers'
// Gemma3TextModel.  Weights are leased part by part of a layer, once for all prompts; of the embeddings only
// the rows that are looked up are read.

#include "models/ltx2/text/gemma_config.h"
#include "models/ltx2/text/gemma_layer.h"
#include "models/ltx2/text/vocabulary.h"
#include "weights/weight_source.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace sluice::ltx2 {

struct GemmaEncoder {
  explicit GemmaEncoder(GemmaConfig config);
  GemmaEncoder(const GemmaEncoder&) = delete;  // the groups hold addresses of the slots
  GemmaEncoder& operator=(const GemmaEncoder&) = delete;

  // Everything that the files must hold: embeddings, each layer, final norm.
  std::vector<const weights::ParameterGroup*> groups() const;
  // What a pass leases, in this order, each once.  The embeddings are not among them: their rows are read.
  std::vector<const weights::ParameterGroup*> pass() const;

  GemmaConfig config;
  at::Tensor embed_tokens;  // [vocab, hidden]; never filled
  std::vector<GemmaLayer> layers;
  at::Tensor norm;

  weights::ParameterGroup embedding_group, norm_group;
};

struct GemmaInput {
  std::span<const TokenId> ids;  // the real tokens, without padding
  // Place of the first one in the padded row: padding tokens on the left count as positions but are never
  // seen, so leaving their columns out is exact.
  std::int64_t position_offset = 0;
  at::ScalarType compute_dtype = at::ScalarType::Float;  // or BFloat16
};

// Gets state k = 0 … layers of every prompt, each [tokens, hidden] in the compute dtype, as it is made: 0 the
// scaled embeddings, k the output of layer k - 1, the last one the final norm of the last layer's output
// (whose raw form is not among them).  State k of all prompts comes before any state k + 1.  May keep it,
// must not write to it.
using GemmaStateSink = std::function<void(std::size_t prompt, std::int64_t state, const at::Tensor& hidden)>;

// One pass over the weights for all prompts; each prompt's states are those that it has alone, to the bit.
// Error(mismatch) for an id outside the vocabulary.  `source` must hold a table that was accounted against
// encoder.groups().
void hidden_states(const GemmaEncoder& encoder, weights::WeightSource& source,
                   std::span<const GemmaInput> prompts, const GemmaStateSink& sink);

// All states of one prompt at once: [tokens, hidden, layers + 1].
at::Tensor stacked_hidden_states(const GemmaEncoder& encoder, weights::WeightSource& source,
                                 const GemmaInput& input);

}  // namespace sluice::ltx2
