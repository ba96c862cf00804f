#pragma once
// The configuration of a Gemma 3 text model as transformers writes it, in its older form (rope_theta,
// rope_local_base_freq, rope_scaling, sliding_window_pattern) and its newer one (rope_parameters a layer
// type, layer_types), with the text model's keys at the top or under text_config.  What a file leaves out has
// transformers' defaults.

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::ltx2 {

enum class GemmaLayerKind { full, sliding };

struct GemmaRope {
  double theta = 10000.0;
  double factor = 1.0;  // the frequencies are divided by it ("linear" scaling)

  bool operator==(const GemmaRope&) const = default;
};

struct GemmaConfig {
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  double query_pre_attn_scalar = 0;  // scores are scaled by its -1/2 power
  double rms_norm_eps = 0;
  std::int64_t sliding_window = 0;  // a query sees itself and this number less one before it
  std::vector<GemmaLayerKind> layers;
  GemmaRope full_rope, sliding_rope;

  std::int64_t states() const { return static_cast<std::int64_t>(layers.size()) + 1; }

  // file: for messages.  Error(bad_input) naming file and key for another model, and for any option of the
  // format that changes the result and is not computed here.
  static GemmaConfig parse(const nlohmann::json& config, const std::string& file);

  bool operator==(const GemmaConfig&) const = default;
};

}  // namespace sluice::ltx2
