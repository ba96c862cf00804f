#include "models/ltx2/text/gemma_layer.h"

#include "kernels/attention.h"
#include "kernels/norm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace sluice::ltx2 {
namespace {

void declare_attention(const weights::ParameterScope& scope, GemmaAttention& layer,
                       const GemmaConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t q_width = config.num_attention_heads * config.head_dim;
  const std::int64_t kv_width = config.num_key_value_heads * config.head_dim;
  nn::declare(scope / "q_proj", layer.q_proj, {.in = hidden, .out = q_width, .bias = nn::Bias::no});
  nn::declare(scope / "k_proj", layer.k_proj, {.in = hidden, .out = kv_width, .bias = nn::Bias::no});
  nn::declare(scope / "v_proj", layer.v_proj, {.in = hidden, .out = kv_width, .bias = nn::Bias::no});
  nn::declare(scope / "o_proj", layer.o_proj, {.in = q_width, .out = hidden, .bias = nn::Bias::no});
  scope.add("q_norm.weight", layer.q_norm, {config.head_dim});
  scope.add("k_norm.weight", layer.k_norm, {config.head_dim});
}

// Queries or keys as projected, [tokens, heads · head_dim]: each head normed and rotated, in place.
void norm_and_rotate(const GemmaConfig& config, at::Tensor& x, const at::Tensor& norm,
                     const GemmaAngles& angles) {
  at::Tensor heads = x.unflatten(1, {-1, config.head_dim});
  auto of_every_head = [&](const at::Tensor& table) {  // [tokens, 1, heads, head_dim / 2]
    return table.unsqueeze(1).unsqueeze(1).expand({-1, 1, heads.size(1), -1});
  };
  kernels::rms_norm_rotate_(heads, config.rms_norm_eps, norm.to(at::kFloat) + 1,
                            {of_every_head(angles.cos), of_every_head(angles.sin)});
}

at::Tensor attention(const GemmaConfig& config, const GemmaLayer& layer, const at::Tensor& x,
                     const GemmaAngles& angles) {
  const GemmaAttention& weights = layer.self_attn;
  at::Tensor q = nn::linear(weights.q_proj, x), k = nn::linear(weights.k_proj, x),
             v = nn::linear(weights.v_proj, x);
  norm_and_rotate(config, q, weights.q_norm, angles);
  norm_and_rotate(config, k, weights.k_norm, angles);

  auto split_heads = [&](const at::Tensor& projected) {  // -> [1, heads, tokens, head_dim]
    return projected.unflatten(1, {-1, config.head_dim}).transpose(0, 1).unsqueeze(0);
  };
  const bool sliding = layer.kind == GemmaLayerKind::sliding;
  at::Tensor out = kernels::attention(split_heads(q), split_heads(k), split_heads(v),
                                      {.bias = {},
                                       .scale = 1.0 / std::sqrt(config.query_pre_attn_scalar),
                                       .visible = kernels::Visible::up_to_own,
                                       .window = sliding ? config.sliding_window : 0});
  return nn::linear(weights.o_proj, out.squeeze(0));  // [tokens, hidden]
}

void multiply_by_up(const nn::Linear& up, GemmaRow& row) {
  const std::int64_t tokens = row.inner.size(0);
  const std::int64_t row_bytes = row.inner.size(1) * static_cast<std::int64_t>(row.inner.element_size());
  const std::int64_t piece = std::max<std::int64_t>(kGemmaPieceBytes / row_bytes, 1);
  for (std::int64_t begin = 0; begin < tokens; begin += piece) {
    const std::int64_t end = std::min(begin + piece, tokens);
    row.inner.slice(0, begin, end).mul_(nn::linear(up, row.normed.slice(0, begin, end)));
  }
}

}  // namespace

void GemmaLayer::declare(const GemmaConfig& config, GemmaLayerKind of_kind, const std::string& name) {
  kind = of_kind;
  const std::int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  auto begin = [&](weights::ParameterGroup& group, const char* part) {
    group.name = name + "." + part;
    return weights::ParameterScope(group, name);
  };
  const auto attention = begin(attention_group, "self_attn");
  attention.add("input_layernorm.weight", input_layernorm, {hidden});
  declare_attention(attention / "self_attn", self_attn, config);
  attention.add("post_attention_layernorm.weight", post_attention_layernorm, {hidden});

  const auto gate = begin(gate_group, "mlp.gate_proj");
  gate.add("pre_feedforward_layernorm.weight", pre_feedforward_layernorm, {hidden});
  nn::declare(gate / "mlp.gate_proj", mlp.gate_proj, {.in = hidden, .out = inner, .bias = nn::Bias::no});
  const auto up = begin(up_group, "mlp.up_proj");
  nn::declare(up / "mlp.up_proj", mlp.up_proj, {.in = hidden, .out = inner, .bias = nn::Bias::no});
  const auto down = begin(down_group, "mlp.down_proj");
  nn::declare(down / "mlp.down_proj", mlp.down_proj, {.in = inner, .out = hidden, .bias = nn::Bias::no});
  down.add("post_feedforward_layernorm.weight", post_feedforward_layernorm, {hidden});
}

GemmaAngles make_angles(const GemmaConfig& config, const GemmaRope& rope, std::int64_t offset,
                        std::int64_t tokens) {
  const at::Tensor exponents = at::arange(0, config.head_dim, 2, at::kFloat) / config.head_dim;
  const at::Tensor frequencies = at::pow(rope.theta, exponents).reciprocal() / rope.factor;
  const at::Tensor positions = at::arange(offset, offset + tokens, at::kLong).to(at::kFloat);
  const at::Tensor angles = positions.unsqueeze(1) * frequencies;  // [tokens, head_dim / 2]
  return {angles.cos(), angles.sin()};
}

at::Tensor gemma_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor scale = weight.to(x.scalar_type()).view({1, 1, -1});
  return nn::modulated_rms_norm(x.unsqueeze(0), eps, scale, at::zeros_like(scale)).squeeze(0);
}

void run_layer(const GemmaConfig& config, const GemmaLayer& layer, weights::WeightSource& source,
               std::span<GemmaRow> rows) {
  const double eps = config.rms_norm_eps;
  {
    auto lease = source.acquire(layer.attention_group);
    for (GemmaRow& row : rows) {
      const GemmaAngles& angles = layer.kind == GemmaLayerKind::full ? row.full : row.sliding;
      const at::Tensor attended =
          attention(config, layer, gemma_rms_norm(row.hidden, layer.input_layernorm, eps), angles);
      row.hidden = gemma_rms_norm(attended, layer.post_attention_layernorm, eps).add_(row.hidden);
    }
  }
  {
    auto lease = source.acquire(layer.gate_group);
    for (GemmaRow& row : rows) {
      row.normed = gemma_rms_norm(row.hidden, layer.pre_feedforward_layernorm, eps);
      row.inner = nn::linear_gelu_tanh(layer.mlp.gate_proj, row.normed);
    }
  }
  {
    auto lease = source.acquire(layer.up_group);
    for (GemmaRow& row : rows) {
      multiply_by_up(layer.mlp.up_proj, row);
      row.normed.reset();
    }
  }
  auto lease = source.acquire(layer.down_group);
  for (GemmaRow& row : rows) {
    const at::Tensor fed = nn::linear(layer.mlp.down_proj, std::exchange(row.inner, {}));
    row.hidden.add_(gemma_rms_norm(fed, layer.post_feedforward_layernorm, eps));
  }
}

std::int64_t gemma_memory(const GemmaConfig& config, std::span<const std::int64_t> tokens,
                          at::ScalarType compute_dtype) {
  const auto size = static_cast<std::int64_t>(elementSize(compute_dtype));
  const std::int64_t all = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
  const std::int64_t longest = tokens.empty() ? 0 : std::ranges::max(tokens);
  const std::int64_t q = config.num_attention_heads * config.head_dim;
  const std::int64_t kv = config.num_key_value_heads * config.head_dim;
  const std::int64_t rows = all * (config.hidden_size * size + 2 * config.head_dim * 4);  // and their angles
  // Of one row: what the attention takes in, queries, keys, values, and the angles of every head or the
  // result.
  const std::int64_t attention =
      longest * ((config.hidden_size + q + 2 * kv) * size + std::max(q * 4, q * size));
  const std::int64_t piece = std::min(longest * config.intermediate_size * size, kGemmaPieceBytes);
  const std::int64_t mlp = all * (config.hidden_size + config.intermediate_size) * size +
                           std::max(piece, 2 * longest * config.hidden_size * size);
  return rows + std::max(attention, mlp);
}

}  // namespace sluice::ltx2
