#pragma once
// What the names in an adapter file say: of which layer a tensor is which part, and which matrix of the model
// that is.  Names alone: no file, no shapes.
//
//   <layer>.lora_A.weight, <layer>.lora_A.<adapter>.weight   PEFT, diffusers, Comfy     down
//   <layer>.lora_B.weight, …                                                            up
//   <layer>.lora_down.weight, <layer>.lora.down.weight       kohya, old diffusers       down
//   <layer>.lora_up.weight, …                                                           up
//   <layer>.alpha                                            a single number

#include "weights/lora/lora_file.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::weights {

enum class LoraPart { down, up, alpha };

struct LoraName {
  std::string layer;  // with whatever prefix it has: "diffusion_model.transformer_blocks.0.attn1.to_q"
  LoraPart part = LoraPart::down;
};

std::optional<LoraName> parse_lora_name(std::string_view tensor);  // empty: another tensor

// What kind of adapter, or of part of one, a tensor belongs to that is no pair of low rank: "DoRA"; empty:
// none that is known.
std::string_view other_adapter_kind(std::string_view tensor);

// Finds a layer's matrix among the targets, under every prefix and naming style.
class LoraLayers {
 public:
  explicit LoraLayers(const LoraTargets& targets);  // which outlive it

  // The parameter, "transformer_blocks.0.attn1.to_q.weight"; empty: the model has no such matrix, or several
  // that the name could mean.
  std::string_view find(std::string_view layer) const;

 private:
  std::string_view find_plain(std::string_view layer) const;

  const LoraTargets& targets_;
  // Names with "_" for ".", as kohya's tools write them; empty where two matrices have the same.
  std::map<std::string, std::string_view, std::less<>> flat_;
};

// "attn1.to_q" of "attn1.to_q.weight".
std::string_view layer_of(std::string_view parameter);

}  // namespace sluice::weights
