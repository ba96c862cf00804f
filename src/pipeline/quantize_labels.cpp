#include "pipeline/quantize_labels.h"

#include "base/file.h"
#include "base/nf4.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluice {
namespace pipeline {
namespace {

using nlohmann::ordered_json;

constexpr Bytes kMostConfigBytes = MiB(16);
constexpr std::string_view kWeight = ".weight";

std::vector<std::string> names_of(const std::vector<QuantizeComponent>& components) {
  std::vector<std::string> names;
  for (QuantizeComponent component : components) names.emplace_back(to_string(component));
  return names;
}

// Says what a reader needs beside the tensors' own dtypes and companions: nothing.  It is for people.
ordered_json quantization_object(const QuantizeLabel& label) {
  ordered_json object = {{"format", to_string(label.format)}, {"components", names_of(label.components)}};
  if (label.format == QuantizeFormat::nf4) {
    object["block_size"] = kNf4BlockValues;
    object["scales"] = "weight.absmax";
  } else {
    object["dtype"] = "float8_e4m3fn";
    object["scales"] = "weight_scale";
  }
  return object;
}

// {"format_version", "layers": {layer: {"format"}}}
std::string layer_metadata(const TensorNames& matrices) {
  ordered_json layers = ordered_json::object();
  for (const std::string& name : matrices)
    layers[name.substr(0, name.size() - kWeight.size())] = {{"format", "float8_e4m3fn"}};
  return ordered_json{{"format_version", "1.0"}, {"layers", layers}}.dump();
}

}  // namespace

std::map<std::string, std::string> label_metadata(std::map<std::string, std::string> metadata,
                                                  const QuantizeLabel& label, const TensorNames& matrices) {
  if (matrices.empty()) return metadata;
  metadata["quantization"] = quantization_object(label).dump();
  if (label.format == QuantizeFormat::fp8) metadata["_quantization_metadata"] = layer_metadata(matrices);
  return metadata;
}

std::string label_config(const std::filesystem::path& path, const QuantizeLabel& label) {
  ordered_json config = ordered_json::parse(read_text(path, kMostConfigBytes), nullptr, false);
  if (!config.is_object()) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: is no JSON object", path.string()),
                "fetch the file again");
  }
  config["quantization"] = quantization_object(label);
  return config.dump(2) + "\n";
}

weights::QuantizationManifest manifest_of(const QuantizeInput& input, const QuantizeLabel& label,
                                          Bytes shard_size) {
  return {.format = std::string(to_string(label.format)),
          .components = names_of(label.components),
          .shard_size = shard_size,
          .quantized_tensors = label.tensors,
          .sources = source_files(input)};
}

}  // namespace pipeline

std::string_view to_string(QuantizeFormat format) {
  return format == QuantizeFormat::fp8 ? "fp8" : "nf4";
}

std::string_view to_string(QuantizeComponent component) {
  switch (component) {
    case QuantizeComponent::transformer:
      return "transformer";
    case QuantizeComponent::text_encoder:
      return "text_encoder";
    case QuantizeComponent::connectors:
      break;
  }
  return "connectors";
}

}  // namespace sluice
