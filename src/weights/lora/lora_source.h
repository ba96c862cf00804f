#pragma once
// Adapters beside a model's weights: with every lease of a group its pairs are there too (Parameter::adapters),
// from a mapping or, where the model's weights stream from disk, read for the group and let go of with it.
// Neither the base's files nor its tensors change.

#include "weights/lora/lora_file.h"
#include "weights/weight_source.h"

#include <sluice/units.h>

#include <memory>
#include <span>
#include <vector>

namespace sluice::weights {

enum class LoraResidence {
  mapped,  // used where they lie in the file
  memory,  // read at the first lease, kept
  disk,    // read for each lease anew
};

// `base` leases the model's own weights; every LoraFile must outlive the source.
std::unique_ptr<WeightSource> make_lora_source(std::unique_ptr<WeightSource> base,
                                               std::span<const LoraFile* const> adapters,
                                               LoraResidence residence);

// Anonymous bytes that the adapters take at once: none where mapped, all of them in memory, the largest group's
// from disk; and what a pass over `order` reads of them.
struct LoraBytes {
  Bytes anonymous = 0;
  Bytes page_cache = 0;
  Bytes once = 0;
  Bytes again = 0;  // for every further pass
};
LoraBytes lora_bytes(std::span<const LoraFile* const> adapters,
                     std::span<const ParameterGroup* const> order, LoraResidence residence);

}  // namespace sluice::weights
