#pragma once
// A tensor of a synthetic checkpoint before it has a place: name and shape.

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::synth {

struct NamedShape {
  std::string name;  // as diffusers and transformers name it
  std::vector<std::int64_t> shape;
};

}  // namespace sluice::synth
