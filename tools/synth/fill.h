#pragma once
// The values of synthetic tensors: a pure function of seed, component, tensor name and element index, so that
// every layout carries the same bytes and any piece can be made alone.  Chosen so that activations stay of
// ordinary size: matrices with std 1 / sqrt(fan in), norms near one, statistics positive, filters that pass
// low frequencies.

#include "synth/named_shape.h"

#include <sluice/checkpoint.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice::synth {

// mean + std · noise, noise a sum of four uniform bytes: near to normal, at most 3.45 standard deviations.
struct Noise {
  float mean = 0;
  float std = 0;
};

using Table = std::vector<float>;  // every value, for small tensors with a meaning

struct Fill {
  std::uint64_t key = 0;  // of seed, component and name
  std::variant<Noise, Table> values;
};

// What the name (as diffusers and transformers have it) says the tensor is.  Two components' tensors of one
// name differ.
Fill choose_fill(std::string_view component, const NamedShape& tensor, std::uint64_t seed);

// Elements [first, first + to.size() / element size) in the tensor's dtype, BF16 or F32.  `first` may be any
// multiple of 2.  Error(usage) for another dtype.
void generate(const Fill& fill, Dtype dtype, std::int64_t first, std::span<std::byte> to);

}  // namespace sluice::synth
