#include "nn/attention.h"

#include "kernels/attention.h"
#include "kernels/norm.h"

#include <ATen/ATen.h>

namespace sluice::nn {
namespace {

at::Tensor split_heads(const at::Tensor& x,
                       std::int64_t heads) {  // [batch, tokens, width] -> [batch, heads, tokens, dim]
  return x.unflatten(2, {heads, -1}).transpose(1, 2);
}

// Queries or keys as projected, normed and rotated in place; heads split.
at::Tensor prepared(at::Tensor x, const at::Tensor& norm, const AttentionConfig& config,
                    const RopeTable* rope) {
  const bool fused = rope && config.rope_layout == RopeLayout::split;
  kernels::rms_norm_rotate_(x, config.norm_eps, norm,
                            fused ? kernels::SplitRotation{rope->cos, rope->sin} : kernels::SplitRotation{});
  if (rope && !fused) x = apply_rope(*rope, config.rope_layout, x);
  return split_heads(x, config.heads);
}

at::Tensor attend(const Attention& layer, const AttentionInput& input, const at::Tensor& context,
                  const at::Tensor& value) {
  const AttentionConfig& config = layer.config;
  at::Tensor q = prepared(linear(layer.to_q, input.x), layer.norm_q, config, input.rope_q);
  at::Tensor k =
      prepared(linear(layer.to_k, context), layer.norm_k, config, input.rope_k ? input.rope_k : input.rope_q);
  return kernels::attention(q, k, split_heads(value, config.heads), input.bias);  // [batch, tokens, width]
}

}  // namespace

void declare(const weights::ParameterScope& scope, Attention& layer, const AttentionConfig& config) {
  layer.config = config;
  const std::int64_t inner = config.heads * config.head_dim;
  declare(scope / "to_q", layer.to_q, {.in = config.query_dim, .out = inner, .bias = config.bias});
  declare(scope / "to_k", layer.to_k, {.in = config.context_dim, .out = inner, .bias = config.bias});
  declare(scope / "to_v", layer.to_v, {.in = config.context_dim, .out = inner, .bias = config.bias});
  declare(scope / "to_out.0", layer.to_out, {.in = inner, .out = config.query_dim, .bias = config.out_bias});
  scope.add("norm_q.weight", layer.norm_q, {inner});
  scope.add("norm_k.weight", layer.norm_k, {inner});
  if (config.gated)
    declare(scope / "to_gate_logits", layer.to_gate_logits, {.in = config.query_dim, .out = config.heads});
}

at::Tensor attention(const Attention& layer, const AttentionInput& input) {
  const at::Tensor& context = input.context.defined() ? input.context : input.x;
  at::Tensor value = linear(layer.to_v, context);
  at::Tensor out;
  const at::Tensor& mask = input.perturbation_mask;
  if (mask.defined() && !at::any(mask != 0).item<bool>()) {
    out = value;
  } else {
    out = attend(layer, input, context, value);
    if (mask.defined()) out = at::lerp(value, out, mask.to(out.scalar_type()));
  }
  if (layer.config.gated) {
    at::Tensor gate = at::sigmoid(linear(layer.to_gate_logits, input.x)) * 2;  // [batch, tokens, heads]
    out.unflatten(2, {layer.config.heads, -1}).mul_(gate.unsqueeze(-1));
  }
  return linear(layer.to_out, out);
}

}  // namespace sluice::nn
