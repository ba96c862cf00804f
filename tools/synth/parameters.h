#pragma once
// The tensors of each component of a synthetic checkpoint, in the order of the model, under both of their
// names. What the models declare comes from the models themselves; what no model of this program reads
// (encoder halves of the autoencoders, the vocoder's inverse transform) is listed here.

#include "models/ltx2/files/component_kind.h"
#include "synth/named_shape.h"
#include "synth/sizes.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace sluice::synth {

struct Component {
  ltx2::ComponentKind kind;
  nlohmann::json config;  // under diffusers' keys, complete enough for diffusers to build the module
  std::vector<NamedShape> tensors;
};

// Error(bad_input) from the models' own parsers for sizes that they refuse.
Component make_component(ltx2::ComponentKind kind, const Sizes& sizes);

// Its tensors under the names of the single file, in the same order.
std::vector<NamedShape> single_file_tensors(const Component& component, const Sizes& sizes);

}  // namespace sluice::synth
