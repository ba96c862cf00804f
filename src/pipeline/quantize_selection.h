#pragma once
// Which tensors of a checkpoint are quantized, by what they are in the model whatever the file calls them.

#include <sluice/checkpoint.h>
#include <sluice/quantize.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace sluice::pipeline {

struct TensorPlace {
  QuantizeComponent component;
  bool linear = false;  // of attention or feed-forward in a block: its weight
};

// By name in the file; tensors of other components are left out.  Knows the names of the published file, of
// diffusers, and of text encoders.
using TensorPlaces = std::map<std::string, TensorPlace, std::less<>>;
TensorPlaces find_places(const Checkpoint& checkpoint);

using TensorNames = std::set<std::string, std::less<>>;

// The matrices of the chosen components.  Error(bad_input) naming the first tensor that is quantized already.
TensorNames select_matrices(const Checkpoint& checkpoint, const TensorPlaces& places,
                            const std::vector<QuantizeComponent>& components);

}  // namespace sluice::pipeline
