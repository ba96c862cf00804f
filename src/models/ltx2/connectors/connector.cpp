#include "models/ltx2/connectors/connector.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace sluice::ltx2 {
namespace {

constexpr double kEps = 1e-6;
constexpr std::int64_t kFeedForwardFactor = 4;

void declare(ConnectorBlock& block, const ConnectorConfig& config, const std::string& name) {
  const std::int64_t width = config.width(), inner = kFeedForwardFactor * width;
  auto begin = [&](weights::ParameterGroup& group, const char* part) {
    group.name = name + "." + part;
    return weights::ParameterScope(group, name);
  };
  nn::declare(begin(block.attention_group, "attn1") / "attn1", block.attn1,
              {.query_dim = width,
               .context_dim = width,
               .heads = config.num_attention_heads,
               .head_dim = config.attention_head_dim,
               .norm_eps = kEps,
               .rope_layout = config.rope_layout,
               .gated = config.gated_attention});
  nn::declare(begin(block.up_group, "ff.net.0.proj") / "ff.net.0.proj", block.ff.up,
              {.in = width, .out = inner});
  nn::declare(begin(block.down_group, "ff.net.2") / "ff.net.2", block.ff.down, {.in = inner, .out = width});
}

// A row on its way through the blocks.
struct Row {
  at::Tensor x;               // [1, tokens, width]
  at::Tensor bias;            // undefined: everything is seen
  const nn::RopeTable* rope;  // of its length
  at::Tensor inner;           // of the feed-forward, between its two matrices
};

at::Tensor normed(const at::Tensor& x) {
  const at::Tensor none = at::zeros({1, 1, x.size(2)}, x.options());
  return nn::modulated_rms_norm(x, kEps, none, none);
}

void run_block(const ConnectorBlock& block, weights::WeightSource& source, std::span<Row> rows) {
  {
    auto lease = source.acquire(block.attention_group);
    for (Row& row : rows)
      row.x.add_(nn::attention(block.attn1, {.x = normed(row.x), .bias = row.bias, .rope_q = row.rope}));
  }
  {
    auto lease = source.acquire(block.up_group);
    for (Row& row : rows) row.inner = nn::linear_gelu_tanh(block.ff.up, normed(row.x));
  }
  auto lease = source.acquire(block.down_group);
  for (Row& row : rows) row.x.add_(nn::linear(block.ff.down, std::exchange(row.inner, {})));
}

nn::RopeTable positions_table(const ConnectorConfig& config, std::int64_t tokens) {
  at::Tensor positions = at::arange(tokens, at::TensorOptions().dtype(at::kFloat)).view({1, 1, tokens});
  return nn::make_rope_table({.dim = config.width(),
                              .heads = config.num_attention_heads,
                              .max_pos = {static_cast<double>(config.rope_base_seq_len)},
                              .theta = config.rope_theta,
                              .double_precision = config.rope_double_precision,
                              .layout = config.rope_layout},
                             positions);
}

void require_whole_registers(const Connector& connector, std::int64_t tokens) {
  const std::int64_t registers = connector.config.num_learnable_registers;
  if (tokens % registers == 0) return;
  const std::int64_t below = tokens / registers * registers;
  throw Error(ErrorKind::bad_input,
              fmt::format("{}: a text of {} positions is no multiple of the {} registers",
                          connector.register_group.name, tokens, registers),
              below == 0 ? fmt::format("use {} positions", registers)
                         : fmt::format("use {} or {} positions", below, below + registers));
}

// [1, tokens, width]: real tokens first, registers (undefined: the caller has none) behind.
at::Tensor fronted_by_registers(const ConnectorRow& row, const at::Tensor& registers) {
  at::Tensor x = registers.repeat({row.mask.size(0) / registers.size(0), 1});
  x.narrow(0, 0, row.features.size(0)).copy_(row.features);
  return x.unsqueeze(0);
}

// The same with every token in its place.
at::Tensor padded_in_place(const ConnectorRow& row, at::ScalarType dtype) {
  at::Tensor x = row.padding.to(dtype).repeat({row.mask.size(0), 1});
  x.index_copy_(0, at::nonzero(row.mask).squeeze(1), row.features.to(dtype));
  return x.unsqueeze(0);
}

// [1, 1, 1, tokens], added to the scores: nothing at real tokens, the lowest number at padding.
at::Tensor padding_bias(const at::Tensor& mask) {
  at::Tensor bias = (mask == 0).to(at::kFloat) * std::numeric_limits<float>::lowest();
  return bias.view({1, 1, 1, -1});
}

void check_row(const Connector& connector, const ConnectorRow& row) {
  const bool fits = row.mask.dim() == 1 && row.features.dim() == 2 &&
                    row.features.size(1) == connector.config.width() &&
                    row.features.size(0) == at::count_nonzero(row.mask).item<std::int64_t>();
  if (!fits) throw Error(ErrorKind::internal, "the connector's features do not fit their mask");
  if (connector.config.num_learnable_registers > 0) require_whole_registers(connector, row.mask.size(0));
}

std::vector<Row> begin_rows(const Connector& connector, weights::WeightSource& source,
                            std::span<const ConnectorRow> inputs, at::ScalarType dtype) {
  for (const ConnectorRow& input : inputs) check_row(connector, input);
  std::vector<Row> rows(inputs.size());
  if (connector.config.num_learnable_registers > 0) {
    auto lease = source.acquire(connector.register_group);
    const at::Tensor registers = connector.learnable_registers.to(dtype);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].x = fronted_by_registers(inputs[i], registers);
  } else {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].x = padded_in_place(inputs[i], dtype);
      rows[i].bias = padding_bias(inputs[i].mask);
    }
  }
  return rows;
}

}  // namespace

Connector::Connector(const ConnectorConfig& from, std::string name)
    : config(from), blocks(static_cast<std::size_t>(from.num_layers)) {
  register_group.name = name;
  if (config.num_learnable_registers > 0) {
    weights::ParameterScope(register_group, name)
        .add("learnable_registers", learnable_registers, {config.num_learnable_registers, config.width()});
  }
  for (std::size_t i = 0; i < blocks.size(); ++i)
    declare(blocks[i], config, fmt::format("{}.transformer_blocks.{}", name, i));
}

std::vector<const weights::ParameterGroup*> Connector::groups() const {
  std::vector<const weights::ParameterGroup*> all = {&register_group};
  for (const ConnectorBlock& block : blocks) {
    for (const auto* group : {&block.attention_group, &block.up_group, &block.down_group})
      all.push_back(group);
  }
  return all;
}

std::vector<at::Tensor> connect(const Connector& connector, weights::WeightSource& source,
                                std::span<const ConnectorRow> inputs, at::ScalarType compute_dtype) {
  at::NoGradGuard no_grad;
  std::vector<Row> rows = begin_rows(connector, source, inputs, compute_dtype);
  std::map<std::int64_t, nn::RopeTable> ropes;  // by length
  for (Row& row : rows) {
    const std::int64_t tokens = row.x.size(1);
    if (!ropes.contains(tokens)) ropes.emplace(tokens, positions_table(connector.config, tokens));
    row.rope = &ropes.at(tokens);
  }
  for (const ConnectorBlock& block : connector.blocks) run_block(block, source, rows);
  std::vector<at::Tensor> results;
  for (Row& row : rows) results.push_back(normed(std::exchange(row.x, {})));
  return results;
}

std::int64_t connector_memory(const ConnectorConfig& config, std::span<const std::int64_t> lengths,
                              at::ScalarType compute_dtype) {
  const std::int64_t all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const std::int64_t longest = lengths.empty() ? 0 : std::ranges::max(lengths);
  // In tensors of a token's width: the rows themselves; then, of one row, what the attention takes in and its
  // values, queries, keys and result, or the inner values of all rows and what the last row takes in.
  const std::int64_t tensors = all + std::max(5 * longest, kFeedForwardFactor * all + longest);
  const std::int64_t angles = longest * 4;  // f32
  return config.width() * (tensors * static_cast<std::int64_t>(elementSize(compute_dtype)) + angles);
}

}  // namespace sluice::ltx2
