#include "models/ltx2/text/gemma_keys.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace sluice::ltx2 {
namespace {

// Longest first: each file uses one for the text model and, shortened, for its neighbours
// ("language_model.lm_head.weight", "model.vision_tower.…").
constexpr std::string_view kPrefixes[] = {"language_model.model.", "model.language_model.", "language_model.",
                                          "model."};

std::string_view model_name(std::string_view name) {
  for (std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

}  // namespace

weights::ComponentTable gemma_table(const Checkpoint& checkpoint) {
  weights::ComponentTable table{"text encoder", checkpoint, {}};
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    auto [place, is_new] = table.tensors.emplace(model_name(tensor.name), tensor);
    if (is_new) continue;
    throw Error(ErrorKind::mismatch,
                fmt::format("{}: tensors '{}' and '{}' are both the text encoder's '{}'",
                            checkpoint.path().string(), place->second.name, tensor.name, place->first),
                "use a folder that holds one text encoder");
  }
  return table;
}

std::span<const weights::IgnoreRule> gemma_ignored() {
  static const std::array<weights::IgnoreRule, 4> rules = {{
      {"vision_tower.", "prompts hold no pictures"},
      {"multi_modal_projector.", "prompts hold no pictures"},
      {"lm_head.", "hidden states are taken, no text is generated"},
      {"spiece_model", "the tokenizer is read from tokenizer.json"},
  }};
  return rules;
}

}  // namespace sluice::ltx2
