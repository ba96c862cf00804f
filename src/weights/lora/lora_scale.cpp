#include "weights/lora/lora_scale.h"

#include "base/file.h"
#include "base/text.h"
#include "weights/dtype.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <limits>

namespace sluice::weights {
namespace {

constexpr Bytes kMostConfiguration = MiB(4);
constexpr std::string_view kComponent = "transformer.";

// The whole text as a number; NaN where it is none.
double parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? value : std::numeric_limits<double>::quiet_NaN();
}

bool is_expression(std::string_view pattern) {
  return pattern.find_first_of("*+?()[]{}|\\^$") != std::string_view::npos;
}

bool ends_with_layer(std::string_view name, std::string_view end) {
  return name.ends_with(end) && (name.size() == end.size() || name[name.size() - end.size() - 1] == '.');
}

}  // namespace

LoraScales::LoraScales(const Checkpoint& checkpoint, const std::filesystem::path& file,
                       std::vector<std::string>& problems)
    : checkpoint_(checkpoint), problems_(problems) {
  alpha_ = number_in_metadata("lora_alpha");
  if (!alpha_) alpha_ = number_in_metadata("ss_network_alpha");
  const auto& metadata = checkpoint.metadata();
  if (auto found = metadata.find("lora_adapter_metadata"); found != metadata.end())
    read_configuration(found->second, "lora_adapter_metadata");
  const std::filesystem::path beside = file.parent_path() / "adapter_config.json";
  if (file.filename() == "adapter_model.safetensors" && std::filesystem::exists(beside))
    read_configuration(read_text(beside, kMostConfiguration), "adapter_config.json");
}

void LoraScales::read_configuration(const std::string& text, const std::string& where) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    problems_.push_back(where + " is no JSON object");
    return;
  }
  // As PEFT writes it, or as diffusers does, with the component in front of every key.
  for (const auto& [key, value] : json.items())
    read_key(key.starts_with(kComponent) ? key.substr(kComponent.size()) : key, value, where);
}

void LoraScales::read_key(const std::string& key, const nlohmann::json& value, const std::string& where) {
  if (value.is_null()) return;
  if (key == "lora_alpha") alpha_ = number_in(value, fmt::format("lora_alpha of {}", where));
  if (key == "use_rslora") by_root_ = value == true;
  if (key == "base_model_name_or_path" && value.is_string()) base_model_ = value.get<std::string>();
  if (key == "use_dora" && value == true) problems_.push_back(where + ": DoRA is not supported");
  if (key == "alpha_pattern" && value.is_object()) {
    for (const auto& [layer, alpha] : value.items()) add_pattern(layer, alpha, where);
  }
}

// PEFT's patterns are regular expressions for the end of a name, and are written as plain ends.
void LoraScales::add_pattern(std::string layer, const nlohmann::json& alpha, const std::string& where) {
  const std::string what = fmt::format("alpha_pattern {} of {}", in_quotes(layer), where);
  if (layer.starts_with('^')) layer.erase(0, 1);
  if (is_expression(layer)) {
    problems_.push_back(what + " is an expression, where only names are supported");
  } else if (const auto value = number_in(alpha, what)) {
    patterns_[layer] = *value;
  }
}

// kohya's tools write None where there is no number.
std::optional<double> LoraScales::number_in_metadata(const std::string& key) {
  auto found = checkpoint_.metadata().find(key);
  if (found == checkpoint_.metadata().end() || found->second == "None") return std::nullopt;
  return finite(parse_number(found->second), fmt::format("{} {}", key, in_quotes(found->second)));
}

std::optional<double> LoraScales::number_in(const nlohmann::json& value, const std::string& where) {
  return finite(value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN(), where);
}

std::optional<double> LoraScales::number_in(const TensorInfo& tensor) {
  if (tensor.elements() != 1) {
    problems_.push_back(
        fmt::format("{} is {}, no single number", in_quotes(tensor.name), format_shape(tensor.shape)));
    return std::nullopt;
  }
  at::Tensor value = at::empty({1}, at::TensorOptions().dtype(to_scalar_type(tensor.dtype)));
  checkpoint_.read(tensor, {static_cast<std::byte*>(value.mutable_data_ptr()), tensor.size});
  return finite(value.to(at::kDouble).item<double>(), in_quotes(tensor.name));
}

std::optional<double> LoraScales::finite(double value, const std::string& where) {
  if (std::isfinite(value)) return value;
  problems_.push_back(where + " is no finite number");
  return std::nullopt;
}

std::optional<double> LoraScales::alpha_of(std::string_view layer, const TensorInfo* alpha) {
  if (alpha) return number_in(*alpha);
  std::string_view longest;  // the most special pattern counts
  std::optional<double> value = alpha_;
  for (const auto& [pattern, of_pattern] : patterns_) {
    if (pattern.size() < longest.size() || !ends_with_layer(layer, pattern)) continue;
    longest = pattern;
    value = of_pattern;
  }
  return value;
}

double LoraScales::of(std::string_view layer, std::int64_t rank, const TensorInfo* alpha) {
  const auto width = static_cast<double>(rank);
  const std::optional<double> value = alpha_of(layer, alpha);
  return value ? *value / (by_root_ ? std::sqrt(width) : width) : 1;
}

}  // namespace sluice::weights
