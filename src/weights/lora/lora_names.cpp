#include "weights/lora/lora_names.h"

#include <algorithm>

namespace sluice::weights {
namespace {

constexpr std::string_view kWeight = ".weight";

struct Ending {
  std::string_view text;
  LoraPart part;
};

constexpr Ending kEndings[] = {
    {".lora_A", LoraPart::down}, {".lora_B", LoraPart::up},      {".lora_down", LoraPart::down},
    {".lora_up", LoraPart::up},  {".lora.down", LoraPart::down}, {".lora.up", LoraPart::up},
};

struct OtherKind {
  std::string_view begin;  // of a part of the name between dots
  std::string_view kind;
};

constexpr OtherKind kOtherKinds[] = {
    {"dora_scale", "DoRA"},
    {"lora_magnitude_vector", "DoRA"},
    {"hada_", "LoHa"},
    {"lokr_", "LoKr"},
    {"lora_mid", "a convolution's LoRA"},
    {"oft_", "OFT"},
    {"boft_", "OFT"},
    {"vera_lambda_", "VeRA"},
    {"ia3_l", "IA3"},
    {"lora_embedding_", "an embedding's LoRA"},
    {"w_norm", "a difference of norms"},
    {"b_norm", "a difference of norms"},
    {"diff_b", "a difference of biases"},
    {"diff", "a difference of whole matrices"},
    {"set_weight", "a replaced matrix"},
    {"reshape_weight", "a matrix of another shape"},
};

// In front of the names of both styles; PEFT's may stand before another.
constexpr std::string_view kPeftPrefix = "base_model.model.";
constexpr std::string_view kPrefixes[] = {"model.diffusion_model.", "diffusion_model.", "transformer."};
constexpr std::string_view kFlatPrefixes[] = {"lora_unet_", "lora_transformer_", "lycoris_"};

bool cut_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

bool cut_begin(std::string_view& text, std::string_view begin) {
  if (!text.starts_with(begin)) return false;
  text.remove_prefix(begin.size());
  return true;
}

std::optional<LoraName> parse_pair(std::string_view name) {
  for (const auto& [text, part] : kEndings) {
    if (cut_end(name, text)) return LoraName{std::string(name), part};
  }
  return std::nullopt;
}

std::string flattened(std::string_view layer) {
  std::string flat(layer);
  std::ranges::replace(flat, '.', '_');
  return flat;
}

}  // namespace

std::string_view layer_of(std::string_view parameter) {
  cut_end(parameter, kWeight);
  return parameter;
}

std::optional<LoraName> parse_lora_name(std::string_view tensor) {
  if (cut_end(tensor, ".alpha")) return LoraName{std::string(tensor), LoraPart::alpha};
  if (!cut_end(tensor, kWeight)) return std::nullopt;
  if (auto name = parse_pair(tensor)) return name;
  // "….lora_A.default": what the adapter was called where it was trained.
  const std::size_t dot = tensor.rfind('.');
  return dot == std::string_view::npos ? std::nullopt : parse_pair(tensor.substr(0, dot));
}

std::string_view other_adapter_kind(std::string_view tensor) {
  if (cut_end(tensor, ".bias") && parse_pair(tensor)) return "a difference of biases";
  while (true) {
    const std::size_t dot = tensor.find('.');
    const std::string_view part = tensor.substr(0, dot);
    for (const auto& [begin, kind] : kOtherKinds) {
      if (part.starts_with(begin) && (begin.ends_with('_') || part.size() == begin.size())) return kind;
    }
    if (dot == std::string_view::npos) return {};
    tensor.remove_prefix(dot + 1);
  }
}

LoraLayers::LoraLayers(const LoraTargets& targets) : targets_(targets) {
  auto add = [&](std::string_view name, std::string_view parameter) {
    auto [entry, is_new] = flat_.emplace(flattened(layer_of(name)), parameter);
    if (!is_new && entry->second != parameter) entry->second = {};
  };
  for (const auto& [parameter, shape] : targets.matrices) add(parameter, parameter);
  for (const auto& [name, parameter] : targets.other_names) add(name, parameter);
}

std::string_view LoraLayers::find_plain(std::string_view layer) const {
  const std::string name = std::string(layer) + std::string(kWeight);
  if (auto found = targets_.matrices.find(name); found != targets_.matrices.end()) return found->first;
  if (auto found = targets_.other_names.find(name); found != targets_.other_names.end()) return found->second;
  return {};
}

std::string_view LoraLayers::find(std::string_view layer) const {
  for (const std::string_view prefix : kFlatPrefixes) {
    if (!cut_begin(layer, prefix)) continue;
    auto found = flat_.find(layer);
    return found == flat_.end() ? std::string_view() : found->second;
  }
  cut_begin(layer, kPeftPrefix);
  for (const std::string_view prefix : kPrefixes) {
    if (cut_begin(layer, prefix)) break;
  }
  return find_plain(layer);
}

}  // namespace sluice::weights
