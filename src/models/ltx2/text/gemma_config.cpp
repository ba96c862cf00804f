#include "models/ltx2/text/gemma_config.h"

#include "nn/config_reader.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>

namespace sluice::ltx2 {
namespace {

using nlohmann::json;
using nn::ConfigReader;

Error refusal(const ConfigReader& reader, std::string_view key, std::string_view why) {
  return Error(ErrorKind::bad_input, fmt::format("{}: '{}' {}", reader.where(), key, why),
               "use a Gemma 3 text encoder in transformers' format");
}

void require_gemma3(const ConfigReader& reader) {
  const auto type = reader.value_or<std::string>("model_type", "gemma3_text");
  if (type != "gemma3" && type != "gemma3_text")
    throw refusal(reader, "model_type", fmt::format("is '{}', known are gemma3 and gemma3_text", type));
}

// Options that change the result and that no published Gemma 3 uses.
void refuse_other_mathematics(const ConfigReader& text) {
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (text.has(key)) throw refusal(text, key, "is set, but Gemma 3 has no soft caps");
  }
  for (const char* key : {"use_bidirectional_attention", "attention_bias"}) {
    if (text.value_or(key, false)) throw refusal(text, key, "is true, which is not supported");
  }
  const auto activation = text.value_or<std::string>("hidden_activation", "gelu_pytorch_tanh");
  if (activation != "gelu_pytorch_tanh")
    throw refusal(text, "hidden_activation", fmt::format("is '{}', known is gelu_pytorch_tanh", activation));
}

// A number, or a list with one a layer if all are equal.
std::int64_t equal_counts(const ConfigReader& text, const char* key, std::int64_t fallback) {
  if (!text.has(key) || !text.at(key).is_array()) return text.count(key, fallback);
  const json& list = text.at(key);
  if (list.empty() || std::adjacent_find(list.begin(), list.end(), std::not_equal_to<>()) != list.end())
    throw refusal(text, key, fmt::format("is {}, which differs between layers", list.dump()));
  const json first = {{key, list.front()}};
  return ConfigReader(first, text.where()).count(key);
}

std::vector<GemmaLayerKind> read_layers(const ConfigReader& text) {
  const auto count = static_cast<std::size_t>(text.count("num_hidden_layers", 26));
  std::vector<GemmaLayerKind> kinds;
  if (!text.has("layer_types")) {
    const auto pattern = static_cast<std::size_t>(text.count("sliding_window_pattern", 6));
    for (std::size_t i = 1; i <= count; ++i)
      kinds.push_back(i % pattern == 0 ? GemmaLayerKind::full : GemmaLayerKind::sliding);
    return kinds;
  }
  for (const auto& type : text.required<std::vector<std::string>>("layer_types")) {
    if (type != "full_attention" && type != "sliding_attention")
      throw refusal(text, "layer_types",
                    fmt::format("holds '{}', known are full_attention and sliding_attention", type));
    kinds.push_back(type == "full_attention" ? GemmaLayerKind::full : GemmaLayerKind::sliding);
  }
  if (kinds.size() != count)
    throw refusal(text, "layer_types", fmt::format("has {} entries for {} layers", kinds.size(), count));
  return kinds;
}

struct RopeKeys {
  const char* layer_type;    // in rope_parameters
  const char* flat_theta;    // of the older form
  const char* flat_scaling;  // likewise; nullptr: this kind of layer never had any
  double default_theta;
};

constexpr RopeKeys kFullRope = {"full_attention", "rope_theta", "rope_scaling", 1'000'000.0};
constexpr RopeKeys kSlidingRope = {"sliding_attention", "rope_local_base_freq", nullptr, 10'000.0};

struct RopeObject {
  json object = json::object();
  std::string place;  // where the file has it
};

// How this kind of layer rotates.  Of two objects rope_scaling decides, as in transformers.
RopeObject rope_object(const ConfigReader& text, const RopeKeys& keys) {
  RopeObject rope;
  rope.place = text.where();
  if (text.has("rope_parameters")) {
    ConfigReader parameters(text.at("rope_parameters"), text.where() + ".rope_parameters");
    rope.place = parameters.where() + "." + keys.layer_type;
    if (parameters.has(keys.layer_type)) rope.object = parameters.at(keys.layer_type);
  }
  if (keys.flat_scaling && text.has(keys.flat_scaling) && rope.object.is_object()) {
    rope.place = text.where() + "." + keys.flat_scaling;
    ConfigReader scaling(text.at(keys.flat_scaling), rope.place);
    rope.object.update(text.at(keys.flat_scaling));
  }
  return rope;
}

GemmaRope read_rope(const ConfigReader& text, const RopeKeys& keys) {
  const RopeObject source = rope_object(text, keys);
  ConfigReader rope(source.object, source.place);
  const char* type_key = rope.has("rope_type") || !rope.has("type") ? "rope_type" : "type";
  const auto type = rope.value_or<std::string>(type_key, "default");
  if (type != "default" && type != "linear")
    throw refusal(rope, type_key, fmt::format("is '{}', known are default and linear", type));
  if (rope.value_or("partial_rotary_factor", 1.0) != 1.0)
    throw refusal(rope, "partial_rotary_factor", "is not 1, which is not supported");

  GemmaRope result;
  result.theta = rope.has("rope_theta") ? rope.required<double>("rope_theta")
                                        : text.value_or(keys.flat_theta, keys.default_theta);
  if (type == "linear") result.factor = rope.required<double>("factor");
  if (!(result.theta > 0)) throw refusal(rope, "rope_theta", "must be above 0");
  if (!(result.factor > 0)) throw refusal(rope, "factor", "must be above 0");
  return result;
}

// A rotation for all layers at once is another model's: transformers would ignore it.
void refuse_flat_rope_parameters(const ConfigReader& text) {
  if (!text.has("rope_parameters")) return;
  ConfigReader parameters(text.at("rope_parameters"), text.where() + ".rope_parameters");
  for (const auto& [key, value] : text.at("rope_parameters").items()) {
    if (key != kFullRope.layer_type && key != kSlidingRope.layer_type)
      throw refusal(parameters, key, "is not one of full_attention and sliding_attention");
  }
}

void check_sizes(const ConfigReader& text, const GemmaConfig& config) {
  if (config.num_attention_heads % config.num_key_value_heads != 0)
    throw refusal(text, "num_key_value_heads",
                  fmt::format("is {}, which does not divide the {} heads", config.num_key_value_heads,
                              config.num_attention_heads));
  if (config.head_dim % 2 != 0)
    throw refusal(text, "head_dim", fmt::format("is {}, not even", config.head_dim));
  if (text.count("global_head_dim", config.head_dim) != config.head_dim)
    throw refusal(text, "global_head_dim", "differs from head_dim, which is not supported");
  if (!(config.query_pre_attn_scalar > 0)) throw refusal(text, "query_pre_attn_scalar", "must be above 0");
  if (!(config.rms_norm_eps >= 0)) throw refusal(text, "rms_norm_eps", "must not be below 0");
}

}  // namespace

GemmaConfig GemmaConfig::parse(const json& config, const std::string& file) {
  ConfigReader top(config, file);
  require_gemma3(top);
  ConfigReader text =
      top.has("text_config") ? ConfigReader(top.at("text_config"), file + ": text_config") : top;
  require_gemma3(text);
  refuse_other_mathematics(text);
  refuse_flat_rope_parameters(text);

  GemmaConfig result;
  result.vocab_size = text.count("vocab_size", 262'208);
  result.hidden_size = text.count("hidden_size", 2304);
  result.intermediate_size = text.count("intermediate_size", 9216);
  result.num_attention_heads = equal_counts(text, "num_attention_heads", 8);
  result.num_key_value_heads = equal_counts(text, "num_key_value_heads", 4);
  result.head_dim = equal_counts(text, "head_dim", 256);
  result.query_pre_attn_scalar = text.value_or("query_pre_attn_scalar", 256.0);
  result.rms_norm_eps = text.value_or("rms_norm_eps", 1e-6);
  result.sliding_window = text.count("sliding_window", 4096);
  result.layers = read_layers(text);
  result.full_rope = read_rope(text, kFullRope);
  result.sliding_rope = read_rope(text, kSlidingRope);
  check_sizes(text, result);
  return result;
}

}  // namespace sluice::ltx2
