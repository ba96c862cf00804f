#pragma once
// One connector: a small transformer without causality over the text's positions, in which learned registers
// take the place of padding.  Follows diffusers' LTX2ConnectorTransformer1d.  Weights are leased a third of a
// block at a time (134 MB of 403 in bf16 at the published size of the video connector), once for all prompts.

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
  weights::ParameterGroup attention_group, up_group, down_group;  // in the order in which they are leased
};

struct Connector {
  Connector(const ConnectorConfig& config, std::string name);  // name: "video_connector"
  Connector(const Connector&) = delete;                        // the groups hold addresses of the slots
  Connector& operator=(const Connector&) = delete;

  std::vector<const weights::ParameterGroup*> groups() const;  // in the order in which they are leased

  ConnectorConfig config;
  at::Tensor learnable_registers;  // [registers, width]
  std::vector<ConnectorBlock> blocks;

  weights::ParameterGroup register_group;  // empty without registers
};

struct ConnectorRow {   // one prompt
  at::Tensor features;  // of its real tokens [real tokens, width]
  at::Tensor padding;   // [width], a padded position's features; not needed with registers
  at::Tensor mask;      // [tokens], 0 = padding: how long the row is and where its tokens lie
};

// [1, tokens, width] for each row; rows may differ in length and are computed one after the other, so that
// none depends on the others.  With registers the real tokens move to the front in their order and position p
// behind them gets register p mod registers: Error(bad_input) unless the number of tokens is a multiple of
// the registers.  Without, tokens stay in their places and padding is never attended to, but has rows of its
// own.
std::vector<at::Tensor> connect(const Connector& connector, weights::WeightSource& source,
                                std::span<const ConnectorRow> rows, at::ScalarType compute_dtype);

// Bytes of the activations that connect() makes, the largest sum at once, for rows of these lengths.
std::int64_t connector_memory(const ConnectorConfig& config, std::span<const std::int64_t> lengths,
                              at::ScalarType compute_dtype);

}  // namespace sluice::ltx2
