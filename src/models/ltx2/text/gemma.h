#pragma once
// The Gemma 3 text model as an encoder: token ids to the states between its layers.  Follows transformers'
// Gemma3TextModel.  Weights are leased layer by layer, so that never more than one layer and, of the
// embeddings, the rows that are looked up need be in memory.

#include "models/ltx2/text/gemma_config.h"
#include "models/ltx2/text/vocabulary.h"
#include "nn/layers.h"
#include "weights/weight_source.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace sluice::ltx2 {

struct GemmaAttention {
  nn::Linear q_proj, k_proj, v_proj, o_proj;
  at::Tensor q_norm, k_norm;  // [head_dim]
};

struct GemmaMlp {
  nn::Linear gate_proj, up_proj, down_proj;
};

// The four norms hold weights minus one.
struct GemmaLayer {
  GemmaLayerKind kind = GemmaLayerKind::full;
  GemmaAttention self_attn;
  GemmaMlp mlp;
  at::Tensor input_layernorm, post_attention_layernorm, pre_feedforward_layernorm, post_feedforward_layernorm;
};

struct GemmaEncoder {
  explicit GemmaEncoder(GemmaConfig config);
  GemmaEncoder(const GemmaEncoder&) = delete;  // the groups hold addresses of the slots
  GemmaEncoder& operator=(const GemmaEncoder&) = delete;

  std::vector<const weights::ParameterGroup*> groups() const;  // embeddings, each layer, final norm

  GemmaConfig config;
  at::Tensor embed_tokens;  // [vocab, hidden]
  std::vector<GemmaLayer> layers;
  at::Tensor norm;

  weights::ParameterGroup embedding_group, norm_group;
  std::vector<weights::ParameterGroup> layer_groups;
};

struct GemmaInput {
  std::span<const TokenId> ids;  // the real tokens, without padding
  // Place of the first one in the padded row: padding tokens on the left count as positions but are never
  // seen, so leaving their columns out is exact.
  std::int64_t position_offset = 0;
  at::ScalarType compute_dtype = at::ScalarType::Float;  // or BFloat16
};

// Gets state k = 0 … layers, each [tokens, hidden] in the compute dtype, as it is made: 0 the scaled
// embeddings, k the output of layer k - 1, the last one the final norm of the last layer's output (whose raw
// form is not among them).  May keep it, must not write to it.
using GemmaStateSink = std::function<void(std::int64_t state, const at::Tensor& hidden)>;

// Error(mismatch) for an id outside the vocabulary.  `source` must hold a table that was accounted against
// encoder.groups().
void hidden_states(const GemmaEncoder& encoder, weights::WeightSource& source, const GemmaInput& input,
                   const GemmaStateSink& sink);

// All states at once: [tokens, hidden, layers + 1].
at::Tensor stacked_hidden_states(const GemmaEncoder& encoder, weights::WeightSource& source,
                                 const GemmaInput& input);

}  // namespace sluice::ltx2
