#include "models/ltx2/text/gemma.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <cmath>

namespace sluice::ltx2 {
namespace {

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

at::Tensor embed(const GemmaEncoder& encoder, weights::WeightSource& source, const GemmaInput& input) {
  const std::vector<std::int64_t> ids(input.ids.begin(), input.ids.end());
  const at::Tensor rows = source.rows(encoder.embedding_group.parameters.front(), ids);
  // transformers rounds the scale to the model's dtype: for 3840 channels 62.0 in bf16, 61.9677 in f32.
  const double root = std::sqrt(static_cast<double>(encoder.config.hidden_size));
  const double scale = input.compute_dtype == at::kBFloat16 ? static_cast<float>(c10::BFloat16(root))
                                                            : static_cast<float>(root);
  return rows.to(input.compute_dtype) * scale;
}

std::vector<GemmaRow> begin_rows(const GemmaEncoder& encoder, weights::WeightSource& source,
                                 std::span<const GemmaInput> prompts) {
  const GemmaConfig& config = encoder.config;
  for (const GemmaInput& input : prompts) check_input(config, input);
  std::vector<GemmaRow> rows;
  for (const GemmaInput& input : prompts) {
    const auto tokens = static_cast<std::int64_t>(input.ids.size());
    rows.push_back({.hidden = embed(encoder, source, input),
                    .full = make_angles(config, config.full_rope, input.position_offset, tokens),
                    .sliding = make_angles(config, config.sliding_rope, input.position_offset, tokens),
                    .normed = {},
                    .inner = {}});
  }
  return rows;
}

}  // namespace

GemmaEncoder::GemmaEncoder(GemmaConfig from) : config(std::move(from)), layers(config.layers.size()) {
  embedding_group.name = "embed_tokens";
  weights::ParameterScope(embedding_group)
      .add("embed_tokens.weight", embed_tokens, {config.vocab_size, config.hidden_size});
  for (std::size_t i = 0; i < layers.size(); ++i)
    layers[i].declare(config, config.layers[i], fmt::format("layers.{}", i));
  norm_group.name = "norm";
  weights::ParameterScope(norm_group).add("norm.weight", norm, {config.hidden_size});
}

std::vector<const weights::ParameterGroup*> GemmaEncoder::groups() const {
  std::vector<const weights::ParameterGroup*> all = pass();
  all.insert(all.begin(), &embedding_group);
  return all;
}

std::vector<const weights::ParameterGroup*> GemmaEncoder::pass() const {
  std::vector<const weights::ParameterGroup*> order;
  for (const GemmaLayer& layer : layers) {
    for (const auto* group : {&layer.attention_group, &layer.gate_group, &layer.up_group, &layer.down_group})
      order.push_back(group);
  }
  order.push_back(&norm_group);
  return order;
}

void hidden_states(const GemmaEncoder& encoder, weights::WeightSource& source,
                   std::span<const GemmaInput> prompts, const GemmaStateSink& sink) {
  at::NoGradGuard no_grad;
  const GemmaConfig& config = encoder.config;
  std::vector<GemmaRow> rows = begin_rows(encoder, source, prompts);
  for (std::size_t i = 0; i < encoder.layers.size(); ++i) {
    for (std::size_t p = 0; p < rows.size(); ++p) sink(p, static_cast<std::int64_t>(i), rows[p].hidden);
    run_layer(config, encoder.layers[i], source, rows);
  }
  auto lease = source.acquire(encoder.norm_group);
  for (std::size_t p = 0; p < rows.size(); ++p) {
    sink(p, static_cast<std::int64_t>(encoder.layers.size()),
         gemma_rms_norm(rows[p].hidden, encoder.norm, config.rms_norm_eps));
  }
}

at::Tensor stacked_hidden_states(const GemmaEncoder& encoder, weights::WeightSource& source,
                                 const GemmaInput& input) {
  const auto tokens = static_cast<std::int64_t>(input.ids.size());
  at::Tensor stacked = at::empty({tokens, encoder.config.hidden_size, encoder.config.states()},
                                 at::TensorOptions().dtype(input.compute_dtype));
  hidden_states(encoder, source, std::span(&input, 1),
                [&](std::size_t, std::int64_t state, const at::Tensor& hidden) {
                  stacked.select(2, state).copy_(hidden);
                });
  return stacked;
}

}  // namespace sluice::ltx2
