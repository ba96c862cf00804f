#pragma once
// One connector: a small transformer without causality over the text's positions, in which learned registers
// take the place of padding.  Follows diffusers' LTX2ConnectorTransformer1d.  Weights are leased block by
// block.

#include "models/ltx2/connectors/connectors_config.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "weights/weight_source.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::ltx2 {

struct ConnectorBlock {
  nn::Attention attn1;
  nn::FeedForward ff;
};

struct Connector {
  Connector(const ConnectorConfig& config, std::string name);  // name: "video_connector"
  Connector(const Connector&) = delete;                        // the groups hold addresses of the slots
  Connector& operator=(const Connector&) = delete;

  std::vector<const weights::ParameterGroup*> groups() const;

  ConnectorConfig config;
  at::Tensor learnable_registers;  // [registers, width]
  std::vector<ConnectorBlock> blocks;

  weights::ParameterGroup register_group;  // empty without registers
  std::vector<weights::ParameterGroup> block_groups;
};

struct ConnectorInput {
  std::span<const at::Tensor> rows;  // each prompt's features [real tokens, width]
  at::Tensor padding;                // [width], a padded position's features; not needed with registers
  at::Tensor mask;  // [batch, tokens], 0 = padding: how long the rows are and where tokens lie
  at::ScalarType compute_dtype = at::ScalarType::Float;
};

// [batch, tokens, width].  With registers the real tokens move to the front in their order and position p
// behind them gets register p mod registers: Error(bad_input) unless the number of tokens is a multiple of
// the registers.  Without, tokens stay in their places and padding is never attended to, but has rows of its
// own.
at::Tensor connect(const Connector& connector, weights::WeightSource& source, const ConnectorInput& input);

}  // namespace sluice::ltx2
