#pragma once
// The configuration of LTX-2's text connectors with the keys of diffusers' LTX2TextConnectors.  What is left
// out has its defaults there.

#include "nn/attention.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace sluice::ltx2 {

// One connector: a transformer over the text's positions.
struct ConnectorConfig {
  std::int64_t num_attention_heads = 0;
  std::int64_t attention_head_dim = 0;
  std::int64_t num_layers = 0;
  std::int64_t num_learnable_registers = 0;  // 0: none, padding stays padding
  bool gated_attention = false;

  // The same for both connectors.
  std::int64_t rope_base_seq_len = 4096;
  double rope_theta = 10000.0;
  bool rope_double_precision = true;
  nn::RopeLayout rope_layout = nn::RopeLayout::interleaved;

  std::int64_t width() const { return num_attention_heads * attention_head_dim; }
};

struct ConnectorsConfig {
  std::int64_t caption_channels = 0;     // the text encoder's hidden size
  std::int64_t text_proj_in_factor = 0;  // its states: layers + 1
  ConnectorConfig video, audio;
  // true (2.3): a token's state is normed by itself, each stream has its own projection.  false (2.0): a
  // state is normed over all tokens of a prompt, one projection serves both streams.
  bool per_modality_projections = false;
  bool proj_bias = false;

  std::int64_t feature_columns() const { return caption_channels * text_proj_in_factor; }

  // file: for messages.  Error(bad_input) naming file and key.
  static ConnectorsConfig parse(const nlohmann::json& config, const std::string& file);
};

struct TextEncoderSize {
  std::string name;  // its folder or file, for messages
  std::int64_t hidden_size = 0;
  std::int64_t states = 0;  // layers + 1
};

// Error(mismatch) with both sizes and the encoder's name if it is not the one these connectors were trained
// with.
void require_text_encoder(const ConnectorsConfig& config, const TextEncoderSize& encoder);

}  // namespace sluice::ltx2
