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

at::Tensor projected(const Linear& layer, const at::Tensor& x, kernels::Workspace& workspace) {
  at::Tensor y = workspace.take({x.size(0), x.size(1), layer.out}, x.scalar_type());
  linear(layer, x, {}, workspace, y);
  return y;
}

// What becomes of queries or keys within the attention.
kernels::AttentionEntry entry(const AttentionConfig& config, const at::Tensor& norm, const RopeTable* rope) {
  kernels::AttentionEntry entry{.norm = norm, .eps = config.norm_eps, .cos = {}, .sin = {}};
  if (rope) entry.cos = rope->cos, entry.sin = rope->sin;
  return entry;
}

// Neighbouring pairs of the full width do not stay within a head's halves: rotated before the attention.
void norm_and_rotate(at::Tensor& x, const AttentionConfig& config, const at::Tensor& norm,
                     const RopeTable& rope) {
  kernels::rms_norm_rotate_(x, config.norm_eps, norm, {});
  x = apply_rope(rope, RopeLayout::interleaved, x);
}

at::Tensor attend(const Attention& layer, const AttentionInput& input, const at::Tensor& context,
                  const at::Tensor& value, const at::Tensor& gate, kernels::Workspace& workspace) {
  const AttentionConfig& config = layer.config;
  const RopeTable *rope_q = input.rope_q, *rope_k = input.rope_k ? input.rope_k : input.rope_q;
  at::Tensor q = projected(layer.to_q, input.x, workspace), k = projected(layer.to_k, context, workspace);
  kernels::AttentionOptions options{.bias = input.bias, .gate = gate, .workspace = &workspace};
  if (rope_q && config.rope_layout == RopeLayout::interleaved) {
    norm_and_rotate(q, config, layer.norm_q, *rope_q);
    norm_and_rotate(k, config, layer.norm_k, *rope_k);
  } else {
    options.queries = entry(config, layer.norm_q, rope_q);
    options.keys = entry(config, layer.norm_k, rope_k);
  }
  options.out = q;  // a head's rows are written when its queries have been read
  return kernels::attention(split_heads(q, config.heads), split_heads(k, config.heads),
                            split_heads(value, config.heads), options);  // [batch, tokens, width]
}

enum class Perturbed { nothing, something, everything };

Perturbed perturbed(const at::Tensor& mask) {
  if (!mask.defined() || at::all(mask == 1).item<bool>()) return Perturbed::nothing;
  return at::any(mask != 0).item<bool>() ? Perturbed::something : Perturbed::everything;
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

void attention(const Attention& layer, const AttentionInput& input, const kernels::Epilogue& epilogue,
               kernels::Workspace& workspace, at::Tensor& y) {
  const kernels::Workspace::Scope scope(workspace);
  const at::Tensor& context = input.context.defined() ? input.context : input.x;
  at::Tensor value = projected(layer.to_v, context, workspace), out = value, gate;
  if (layer.config.gated)
    gate = projected(layer.to_gate_logits, input.x, workspace);  // [batch, tokens, heads]
  const at::Tensor& mask = input.perturbation_mask;
  const Perturbed how = perturbed(mask);
  if (how == Perturbed::nothing) {
    out = attend(layer, input, context, value, gate, workspace);
  } else {
    if (how == Perturbed::something) {
      out = attend(layer, input, context, value, {}, workspace);
      at::lerp_out(out, value, out, mask.to(out.scalar_type()));
    }
    if (gate.defined())
      out.unflatten(2, {layer.config.heads, -1}).mul_(gate.sigmoid_().mul_(2).unsqueeze(-1));
  }
  linear(layer.to_out, out, epilogue, workspace, y);
}

at::Tensor attention(const Attention& layer, const AttentionInput& input) {
  at::Tensor y = at::empty({input.x.size(0), input.x.size(1), layer.config.query_dim}, input.x.options());
  kernels::Workspace workspace;
  attention(layer, input, {}, workspace, y);
  return y;
}

}  // namespace sluice::nn
