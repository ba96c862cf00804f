#pragma once
// An adapter file (LoRA) as pairs of low rank for the matrices of a model, whatever the file calls them:
//   diffusers   transformer.transformer_blocks.0.attn1.to_q.lora_A.weight / lora_B.weight (PEFT)
//   Comfy       diffusion_model.… with the names of the published single file
//   kohya       lora_unet_transformer_blocks_0_attn1_to_q.lora_down.weight / lora_up.weight, .alpha
// and these naming styles with other prefixes, or none (lora_names.h).  Reads the header, alphas, which are
// single values, and PEFT's configuration beside the file (lora_scale.h).

#include "weights/component.h"

#include <sluice/checkpoint.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice::weights {

struct LoraPair {
  std::string parameter;  // the model's: "transformer_blocks.0.attn1.to_q.weight"
  TensorInfo down;        // [rank, in]
  TensorInfo up;          // [out, rank]
  std::int64_t rank = 0;
  double factor = 1;  // strength · alpha / rank (√rank with rslora); alpha = rank where the file has none
};

struct LoraFile {
  Checkpoint checkpoint;
  double strength = 1;
  std::map<std::string, LoraPair, std::less<>> pairs;  // by parameter
  std::vector<std::string> unmatched;  // tensors of the file that belong to no matrix of the model
  std::int64_t lowest_rank = 0, highest_rank = 0;
  // Of a control adapter (IC-LoRA): how much smaller its reference video is; none: an ordinary adapter.
  std::optional<std::int64_t> reference_downscale_factor;
  std::string base_version;  // for which model it was made, where the metadata tells; else empty
};

// The matrices of a model that an adapter may name, with their shapes [out, in]; and what the published
// single file calls them.
struct LoraTargets {
  std::map<std::string, std::vector<std::int64_t>, std::less<>> matrices;  // by parameter
  std::map<std::string, std::string, std::less<>> other_names;             // the single file's -> parameter
};

// `path`: a safetensors file, or a folder with adapter_model.safetensors (PEFT), with
// pytorch_lora_weights.safetensors (diffusers) or with one other safetensors file.
//
// Error(bad_input / mismatch), file and tensor named, everything wrong at once, eight at most: no adapter;
// nothing in it matches (matched of total, first unknown name); shapes of another model (both); one half of a
// pair missing; two pairs for one matrix; kinds of adapters that are not supported (DoRA, LoHa, LoKr,
// full-matrix or bias differences, convolutions, …), by name; a dtype that cannot be computed with; alpha
// that is no finite number.  Error(usage) where the strength is none.
LoraFile open_lora(const std::filesystem::path& path, double strength, const LoraTargets& targets);

}  // namespace sluice::weights
