#include "models/ltx2/text/gemma.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace sluice::ltx2 {
namespace {

void declare(const weights::ParameterScope& scope, GemmaAttention& layer, const GemmaConfig& config) {
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

void declare(const weights::ParameterScope& scope, GemmaMlp& layer, const GemmaConfig& config) {
  const std::int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  nn::declare(scope / "gate_proj", layer.gate_proj, {.in = hidden, .out = inner, .bias = nn::Bias::no});
  nn::declare(scope / "up_proj", layer.up_proj, {.in = hidden, .out = inner, .bias = nn::Bias::no});
  nn::declare(scope / "down_proj", layer.down_proj, {.in = inner, .out = hidden, .bias = nn::Bias::no});
}

void declare(const weights::ParameterScope& scope, GemmaLayer& layer, const GemmaConfig& config) {
  declare(scope / "self_attn", layer.self_attn, config);
  declare(scope / "mlp", layer.mlp, config);
  scope.add("input_layernorm.weight", layer.input_layernorm, {config.hidden_size});
  scope.add("post_attention_layernorm.weight", layer.post_attention_layernorm, {config.hidden_size});
  scope.add("pre_feedforward_layernorm.weight", layer.pre_feedforward_layernorm, {config.hidden_size});
  scope.add("post_feedforward_layernorm.weight", layer.post_feedforward_layernorm, {config.hidden_size});
}

// What all layers of one kind share for one row of tokens.
struct LayerContext {
  at::Tensor cos, sin;             // [tokens, head_dim] in the compute dtype
  std::optional<at::Tensor> mask;  // [tokens, tokens], true = seen; none: plain causal
};

LayerContext make_context(const GemmaConfig& config, GemmaLayerKind kind, const GemmaInput& input) {
  const GemmaRope& rope = kind == GemmaLayerKind::full ? config.full_rope : config.sliding_rope;
  const auto tokens = static_cast<std::int64_t>(input.ids.size());
  at::Tensor exponents = at::arange(0, config.head_dim, 2, at::kFloat) / config.head_dim;
  at::Tensor frequencies = at::pow(rope.theta, exponents).reciprocal() / rope.factor;  // [head_dim / 2]
  at::Tensor positions =
      at::arange(input.position_offset, input.position_offset + tokens, at::kLong).to(at::kFloat);
  at::Tensor angles = positions.unsqueeze(1) * frequencies;
  angles = at::cat({angles, angles}, -1);

  LayerContext context;
  context.cos = angles.cos().to(input.compute_dtype);
  context.sin = angles.sin().to(input.compute_dtype);
  if (kind == GemmaLayerKind::sliding && tokens > config.sliding_window) {
    // Row q, column k: k <= q and k > q - window.
    context.mask = at::ones({tokens, tokens}, at::kBool).tril_().triu_(1 - config.sliding_window);
  }
  return context;
}

// Statistics, weight and product in f32, rounded once at the end; the weight is stored minus one.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return nn::rms_norm(x.to(at::kFloat), eps, weight.to(at::kFloat) + 1).to(x.scalar_type());
}

at::Tensor rotate(const at::Tensor& x, const LayerContext& context) {  // x: [heads, tokens, head_dim]
  auto halves = x.chunk(2, -1);
  return x * context.cos + at::cat({-halves[1], halves[0]}, -1) * context.sin;
}

at::Tensor attention(const GemmaConfig& config, const GemmaAttention& layer, const at::Tensor& x,
                     const LayerContext& context) {
  auto split_heads = [&](const at::Tensor& projected) {  // [tokens, width] -> [heads, tokens, head_dim]
    return projected.unflatten(1, {-1, config.head_dim}).transpose(0, 1);
  };
  at::Tensor q = split_heads(nn::linear(layer.q_proj, x));
  at::Tensor k = split_heads(nn::linear(layer.k_proj, x));
  at::Tensor v = split_heads(nn::linear(layer.v_proj, x));
  q = rotate(rms_norm(q, layer.q_norm, config.rms_norm_eps), context);
  k = rotate(rms_norm(k, layer.k_norm, config.rms_norm_eps), context);

  const double scale = 1.0 / std::sqrt(config.query_pre_attn_scalar);
  at::Tensor out = at::scaled_dot_product_attention(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0),
                                                    context.mask, /*dropout_p=*/0.0,
                                                    /*is_causal=*/!context.mask, scale, /*enable_gqa=*/true);
  return nn::linear(layer.o_proj, out.squeeze(0).transpose(0, 1).flatten(1));  // [tokens, hidden]
}

at::Tensor mlp(const GemmaMlp& layer, const at::Tensor& x) {
  at::Tensor inner = nn::linear_gelu_tanh(layer.gate_proj, x).mul_(nn::linear(layer.up_proj, x));
  return nn::linear(layer.down_proj, inner);
}

at::Tensor decoder_layer(const GemmaConfig& config, const GemmaLayer& layer, const at::Tensor& x,
                         const LayerContext& context) {
  const double eps = config.rms_norm_eps;
  at::Tensor attended = attention(config, layer.self_attn, rms_norm(x, layer.input_layernorm, eps), context);
  at::Tensor h = x + rms_norm(attended, layer.post_attention_layernorm, eps);
  at::Tensor fed = mlp(layer.mlp, rms_norm(h, layer.pre_feedforward_layernorm, eps));
  return h + rms_norm(fed, layer.post_feedforward_layernorm, eps);
}

// Rows gathered from the table in its own dtype, so that a mapped table is read at these rows only.
at::Tensor embed(const GemmaEncoder& encoder, const GemmaInput& input) {
  at::Tensor ids = at::tensor(at::ArrayRef<TokenId>(input.ids.data(), input.ids.size()), at::kInt);
  at::Tensor rows = encoder.embed_tokens.index_select(0, ids).to(input.compute_dtype);
  // transformers rounds the scale to the model's dtype: for 3840 channels 62.0 in bf16, 61.9677 in f32.
  const double root = std::sqrt(static_cast<double>(encoder.config.hidden_size));
  const double scale = input.compute_dtype == at::kBFloat16 ? static_cast<float>(c10::BFloat16(root))
                                                            : static_cast<float>(root);
  return rows.mul_(scale);
}

void check_input(const GemmaConfig& config, const GemmaInput& input) {
  if (input.ids.empty()) throw Error(ErrorKind::internal, "the text encoder was given no tokens");
  for (TokenId id : input.ids) {
    if (id >= 0 && id < config.vocab_size) continue;
    throw Error(
        ErrorKind::mismatch,
        fmt::format("token id {} is outside the text encoder's vocabulary of {}", id, config.vocab_size),
        "use the tokenizer that came with the text encoder");
  }
}

}  // namespace

GemmaEncoder::GemmaEncoder(GemmaConfig from) : config(std::move(from)), layers(config.layers.size()) {
  embedding_group.name = "embed_tokens";
  weights::ParameterScope(embedding_group)
      .add("embed_tokens.weight", embed_tokens, {config.vocab_size, config.hidden_size});
  layer_groups.resize(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].kind = config.layers[i];
    layer_groups[i].name = fmt::format("layers.{}", i);
    declare(weights::ParameterScope(layer_groups[i], layer_groups[i].name), layers[i], config);
  }
  norm_group.name = "norm";
  weights::ParameterScope(norm_group).add("norm.weight", norm, {config.hidden_size});
}

std::vector<const weights::ParameterGroup*> GemmaEncoder::groups() const {
  std::vector<const weights::ParameterGroup*> all = {&embedding_group};
  for (const auto& group : layer_groups) all.push_back(&group);
  all.push_back(&norm_group);
  return all;
}

void hidden_states(const GemmaEncoder& encoder, weights::WeightSource& source, const GemmaInput& input,
                   const GemmaStateSink& sink) {
  at::NoGradGuard no_grad;
  const GemmaConfig& config = encoder.config;
  check_input(config, input);
  const LayerContext full = make_context(config, GemmaLayerKind::full, input);
  const LayerContext sliding = make_context(config, GemmaLayerKind::sliding, input);

  at::Tensor x;  // [tokens, hidden]
  {
    auto lease = source.acquire(encoder.embedding_group);
    x = embed(encoder, input);
  }
  for (std::size_t i = 0; i < encoder.layers.size(); ++i) {
    sink(static_cast<std::int64_t>(i), x);
    auto lease = source.acquire(encoder.layer_groups[i]);
    const GemmaLayer& layer = encoder.layers[i];
    x = decoder_layer(config, layer, x, layer.kind == GemmaLayerKind::full ? full : sliding);
  }
  auto lease = source.acquire(encoder.norm_group);
  sink(static_cast<std::int64_t>(encoder.layers.size()), rms_norm(x, encoder.norm, config.rms_norm_eps));
}

at::Tensor stacked_hidden_states(const GemmaEncoder& encoder, weights::WeightSource& source,
                                 const GemmaInput& input) {
  const auto tokens = static_cast<std::int64_t>(input.ids.size());
  at::Tensor stacked = at::empty({tokens, encoder.config.hidden_size, encoder.config.states()},
                                 at::TensorOptions().dtype(input.compute_dtype));
  hidden_states(encoder, source, input, [&](std::int64_t state, const at::Tensor& hidden) {
    stacked.select(2, state).copy_(hidden);
  });
  return stacked;
}

}  // namespace sluice::ltx2
