#pragma once
// The attention of LTX-2: q and k normed over the full width (all heads together) before RoPE and head split,
// softmax scale 1 / sqrt(head_dim), an optional gate 2 · sigmoid(logit) a head, computed from the queries'
// input.

#include "nn/layers.h"
#include "nn/rope.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::nn {

struct AttentionConfig {
  std::int64_t query_dim = 0;    // width of x and of the result
  std::int64_t context_dim = 0;  // width of the context; = query_dim for self-attention
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  double norm_eps = 1e-6;
  RopeLayout rope_layout = RopeLayout::split;
  Bias bias = Bias::yes;      // of to_q, to_k, to_v
  Bias out_bias = Bias::yes;  // of to_out
  bool gated = false;
};

struct Attention {
  AttentionConfig config;
  Linear to_q, to_k, to_v, to_out, to_gate_logits;
  at::Tensor norm_q, norm_k;  // [heads · head_dim]
};

struct AttentionInput {
  at::Tensor x;        // [batch, tokens, query_dim]
  at::Tensor context;  // [batch, keys, context_dim]; undefined: x
  at::Tensor bias;     // added to the scores, broadcast to [batch, heads, tokens, keys]; undefined: none
  const RopeTable* rope_q = nullptr;
  const RopeTable* rope_k = nullptr;  // nullptr: rope_q
  // Spatio-temporal guidance: where 0 the values stand for the attention's result (no softmax, q, k or RoPE),
  // where 1 nothing changes, between: lerp.  Broadcasts to [batch, tokens, width]; undefined: none.
  at::Tensor perturbation_mask;
};

void declare(const weights::ParameterScope& scope, Attention& layer, const AttentionConfig& config);

// y, [batch, tokens, query_dim] as a linear layer leaves it, and what follows it (kernels/epilogue.h); what
// lives meanwhile comes from the workspace.
void attention(const Attention& layer, const AttentionInput& input, const kernels::Epilogue& epilogue,
               kernels::Workspace& workspace, at::Tensor& y);
at::Tensor attention(const Attention& layer, const AttentionInput& input);

}  // namespace sluice::nn
