#pragma once
// One decoder layer of Gemma 3 over the rows of one or more prompts.  Its weights are leased in four parts,
// and each part serves every prompt before the next one is leased: a quarter of a layer is in memory at once
// (118 MB of 448 in bf16 at the published size), and each byte is read once for all prompts.

#include "models/ltx2/text/gemma_config.h"
#include "nn/layers.h"
#include "weights/weight_source.h"

#include <ATen/core/Tensor.h>

#include <span>
#include <string>

namespace sluice::ltx2 {

struct GemmaAttention {
  nn::Linear q_proj, k_proj, v_proj, o_proj;
  at::Tensor q_norm, k_norm;  // [head_dim]
};

struct GemmaMlp {
  nn::Linear gate_proj, up_proj, down_proj;
};

// All norms hold weights minus one.
struct GemmaLayer {
  void declare(const GemmaConfig& config, GemmaLayerKind kind, const std::string& name);

  GemmaLayerKind kind = GemmaLayerKind::full;
  GemmaAttention self_attn;
  GemmaMlp mlp;
  at::Tensor input_layernorm, post_attention_layernorm, pre_feedforward_layernorm, post_feedforward_layernorm;

  // In the order in which they are leased.  A norm is leased with the matrices that it stands before or
  // behind.
  weights::ParameterGroup attention_group, gate_group, up_group, down_group;
};

// Rotary angles of a row's positions: f32 [tokens, head_dim / 2].
struct GemmaAngles {
  at::Tensor cos, sin;
};

// A prompt on its way through the layers.
struct GemmaRow {
  at::Tensor hidden;  // [tokens, hidden_size] in the compute dtype
  GemmaAngles full, sliding;
  at::Tensor normed,
      inner;  // between the parts of a layer: [tokens, hidden_size], [tokens, intermediate_size]
};

// Angles of `tokens` positions from `offset` on.
GemmaAngles make_angles(const GemmaConfig& config, const GemmaRope& rope, std::int64_t offset,
                        std::int64_t tokens);

// Replaces every row's `hidden`; the tensor that was there is left as it is.  Rows are computed one after the
// other, so that a prompt's result does not depend on the others.
void run_layer(const GemmaConfig& config, const GemmaLayer& layer, weights::WeightSource& source,
               std::span<GemmaRow> rows);

// Statistics, weight and product in f32, rounded once at the end.  x: [tokens, width].
at::Tensor gemma_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

// Bytes of the activations of a pass, the largest sum at once, for prompts of these lengths.
std::int64_t gemma_memory(const GemmaConfig& config, std::span<const std::int64_t> tokens,
                          at::ScalarType compute_dtype);

// Of a tensor of inner values beside the one that is kept: a prompt's tokens go through the up projection in
// pieces.
inline constexpr std::int64_t kGemmaPieceBytes = std::int64_t{32} << 20;

}  // namespace sluice::ltx2
