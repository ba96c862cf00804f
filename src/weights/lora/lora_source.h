#pragma once
// Adapters beside a model's weights: with every lease of a group its pairs are there too
// (Parameter::adapters), from a mapping or, where the model's weights stream from disk, read for the group
// and let go of with it. Neither the base's files nor its tensors change.

#include "weights/lora/lora_file.h"
#include "weights/stage.h"

#include <sluice/units.h>

#include <memory>
#include <span>
#include <vector>

namespace sluice::weights {

enum class LoraResidence {
  mapped,  // used where they lie in the file
  memory,  // read at the first lease, kept
  disk,    // read for each lease anew, the next group's while the last ones are used
};

// `base` leases the model's own weights; `order`: its groups in the order of a pass.  Groups and every
// LoraFile must outlive the source.  Every adapter has a source of its own, made as the residence says with
// the options (mapped: of them only the cache policy counts); pairs are lent in the order of the adapters.
// check() and bytes_read() are about the base and the adapters.  Error(internal) where a pair is for a matrix
// that no group has, or that can have none.
std::unique_ptr<WeightSource> make_lora_source(std::unique_ptr<WeightSource> base,
                                               std::span<const LoraFile* const> adapters,
                                               std::span<const ParameterGroup* const> order,
                                               LoraResidence residence, const StageOptions& options = {});

// What the adapters take at once, and what a pass over `order` reads of them.
struct LoraBytes {
  Bytes anonymous = 0;   // none where mapped; in memory all of them; from disk two groups and what is small
  Bytes page_cache = 0;  // all of them where mapped
  Bytes once = 0;        // for the first pass
  Bytes again = 0;       // for every further one
};
LoraBytes lora_bytes(std::span<const LoraFile* const> adapters, std::span<const ParameterGroup* const> order,
                     LoraResidence residence);

}  // namespace sluice::weights
