#include "models/ltx2/connectors/connector.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <limits>

namespace sluice::ltx2 {
namespace {

constexpr double kEps = 1e-6;
constexpr std::int64_t kFeedForwardFactor = 4;

void declare(const weights::ParameterScope& scope, ConnectorBlock& block, const ConnectorConfig& config) {
  const std::int64_t width = config.width();
  nn::declare(scope / "attn1", block.attn1,
              {.query_dim = width,
               .context_dim = width,
               .heads = config.num_attention_heads,
               .head_dim = config.attention_head_dim,
               .norm_eps = kEps,
               .rope_layout = config.rope_layout,
               .gated = config.gated_attention});
  nn::declare(scope / "ff", block.ff, {.dim = width, .inner = kFeedForwardFactor * width});
}

at::Tensor connector_block(const ConnectorBlock& block, const at::Tensor& x, const nn::RopeTable& rope,
                           const at::Tensor& bias) {
  at::Tensor h = x + nn::attention(block.attn1, {.x = nn::rms_norm(x, kEps), .bias = bias, .rope_q = &rope});
  return h + nn::feed_forward(block.ff, nn::rms_norm(h, kEps));
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

// [batch, tokens, width]: real tokens first, registers behind.
at::Tensor fronted_by_registers(const Connector& connector, weights::WeightSource& source,
                                const ConnectorInput& input) {
  const std::int64_t batch = input.mask.size(0), tokens = input.mask.size(1);
  require_whole_registers(connector, tokens);
  auto lease = source.acquire(connector.register_group);
  at::Tensor registers = connector.learnable_registers.to(input.compute_dtype);
  at::Tensor x = registers.repeat({batch, tokens / registers.size(0), 1});
  for (std::int64_t row = 0; row < batch; ++row) {
    const at::Tensor& features = input.rows[static_cast<std::size_t>(row)];
    x[row].narrow(0, 0, features.size(0)).copy_(features);
  }
  return x;
}

// The same with every token in its place.
at::Tensor padded_in_place(const ConnectorInput& input) {
  const std::int64_t batch = input.mask.size(0), tokens = input.mask.size(1);
  at::Tensor x = input.padding.to(input.compute_dtype).repeat({batch, tokens, 1});
  for (std::int64_t row = 0; row < batch; ++row) {
    at::Tensor places = at::nonzero(input.mask[row]).squeeze(1);
    x[row].index_copy_(0, places, input.rows[static_cast<std::size_t>(row)].to(input.compute_dtype));
  }
  return x;
}

// [batch, 1, 1, tokens], added to the scores: nothing at real tokens, the lowest number at padding.
at::Tensor padding_bias(const at::Tensor& mask) {
  at::Tensor bias = (mask == 0).to(at::kFloat) * std::numeric_limits<float>::lowest();
  return bias.unsqueeze(1).unsqueeze(1);
}

void check_input(const Connector& connector, const ConnectorInput& input) {
  const auto rows = static_cast<std::int64_t>(input.rows.size());
  bool fits = input.mask.dim() == 2 && input.mask.size(0) == rows;
  for (std::int64_t row = 0; fits && row < rows; ++row) {
    const at::Tensor& features = input.rows[static_cast<std::size_t>(row)];
    fits = features.dim() == 2 && features.size(1) == connector.config.width() &&
           features.size(0) == at::count_nonzero(input.mask[row]).item<std::int64_t>();
  }
  if (!fits) throw Error(ErrorKind::internal, "the connector's features do not fit their mask");
}

}  // namespace

Connector::Connector(const ConnectorConfig& from, std::string name)
    : config(from), blocks(static_cast<std::size_t>(from.num_layers)) {
  register_group.name = name;
  if (config.num_learnable_registers > 0) {
    weights::ParameterScope(register_group, name)
        .add("learnable_registers", learnable_registers, {config.num_learnable_registers, config.width()});
  }
  block_groups.resize(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    block_groups[i].name = fmt::format("{}.transformer_blocks.{}", name, i);
    declare(weights::ParameterScope(block_groups[i], block_groups[i].name), blocks[i], config);
  }
}

std::vector<const weights::ParameterGroup*> Connector::groups() const {
  std::vector<const weights::ParameterGroup*> all = {&register_group};
  for (const auto& group : block_groups) all.push_back(&group);
  return all;
}

at::Tensor connect(const Connector& connector, weights::WeightSource& source, const ConnectorInput& input) {
  at::NoGradGuard no_grad;
  check_input(connector, input);
  at::Tensor x, bias;  // bias undefined: everything is seen
  if (connector.config.num_learnable_registers > 0) {
    x = fronted_by_registers(connector, source, input);
  } else {
    x = padded_in_place(input);
    bias = padding_bias(input.mask);
  }

  const nn::RopeTable rope = positions_table(connector.config, x.size(1));
  for (std::size_t i = 0; i < connector.blocks.size(); ++i) {
    auto lease = source.acquire(connector.block_groups[i]);
    x = connector_block(connector.blocks[i], x, rope, bias);
  }
  return nn::rms_norm(x, kEps);
}

}  // namespace sluice::ltx2
