#include "models/ltx2/connectors/connectors_config.h"

#include "nn/config_reader.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluice::ltx2 {
namespace {

using nlohmann::json;
using nn::ConfigReader;

// 128 where the key is left out, none where it is null.
std::int64_t read_registers(const json& config, const ConfigReader& reader, const std::string& key) {
  if (config.contains(key) && config.at(key).is_null()) return 0;
  return reader.count(key, 128);
}

ConnectorConfig read_connector(const json& config, const ConfigReader& reader, const std::string& stream) {
  const std::string prefix = stream + "_connector_";
  ConnectorConfig result;
  result.num_attention_heads = reader.count(prefix + "num_attention_heads", 30);
  result.attention_head_dim = reader.count(prefix + "attention_head_dim", 128);
  result.num_layers = reader.count(prefix + "num_layers", 2);
  result.num_learnable_registers = read_registers(config, reader, prefix + "num_learnable_registers");
  result.gated_attention = reader.value_or(stream + "_gated_attn", false);
  result.rope_base_seq_len = reader.count("connector_rope_base_seq_len", 4096);
  result.rope_theta = reader.value_or("rope_theta", 10000.0);
  result.rope_double_precision = reader.value_or("rope_double_precision", true);
  result.rope_layout = nn::parse_rope_layout(reader.value_or<std::string>("rope_type", "interleaved"));
  return result;
}

void require_width(const ConfigReader& reader, const char* key, std::int64_t width, const char* stream,
                   const ConnectorConfig& connector) {
  if (width == connector.width()) return;
  throw Error(ErrorKind::bad_input,
              fmt::format("{}: '{}' is {}, but the {} connector is {} heads of {} wide", reader.where(), key,
                          width, stream, connector.num_attention_heads, connector.attention_head_dim),
              "use the published config");
}

struct KnownEncoder {
  std::int64_t hidden_size, layers;
  const char* name;
};

constexpr KnownEncoder kGemma3[] = {
    {640, 18, "Gemma 3 270M"}, {1152, 26, "Gemma 3 1B"},  {2560, 34, "Gemma 3 4B"},
    {3840, 48, "Gemma 3 12B"}, {5376, 62, "Gemma 3 27B"},
};

// "hidden size 3840 and 48 layers (Gemma 3 12B)"
std::string describe(std::int64_t hidden_size, std::int64_t states) {
  std::string text = fmt::format("hidden size {} and {} layers", hidden_size, states - 1);
  for (const KnownEncoder& known : kGemma3) {
    if (known.hidden_size == hidden_size && known.layers == states - 1)
      text += fmt::format(" ({})", known.name);
  }
  return text;
}

}  // namespace

ConnectorsConfig ConnectorsConfig::parse(const json& config, const std::string& file) {
  ConfigReader reader(config, file);
  ConnectorsConfig result;
  result.caption_channels = reader.count("caption_channels", 3840);
  result.text_proj_in_factor = reader.count("text_proj_in_factor", 49);
  result.video = read_connector(config, reader, "video");
  result.audio = read_connector(config, reader, "audio");
  result.per_modality_projections = reader.value_or("per_modality_projections", false);
  result.proj_bias = reader.value_or("proj_bias", false);
  if (result.per_modality_projections) {
    require_width(reader, "video_hidden_dim", reader.count("video_hidden_dim", 4096), "video", result.video);
    require_width(reader, "audio_hidden_dim", reader.count("audio_hidden_dim", 2048), "audio", result.audio);
  } else {
    require_width(reader, "caption_channels", result.caption_channels, "video", result.video);
    require_width(reader, "caption_channels", result.caption_channels, "audio", result.audio);
  }
  return result;
}

void require_text_encoder(const ConnectorsConfig& config, const TextEncoderSize& encoder) {
  if (encoder.hidden_size == config.caption_channels && encoder.states == config.text_proj_in_factor) return;
  const std::string needed = describe(config.caption_channels, config.text_proj_in_factor);
  throw Error(ErrorKind::mismatch,
              fmt::format("{}: the text encoder has {}, the checkpoint needs {}", encoder.name,
                          describe(encoder.hidden_size, encoder.states), needed),
              fmt::format("pass the text encoder with {}", needed));
}

}  // namespace sluice::ltx2
