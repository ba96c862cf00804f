#pragma once
// A small adapter (LoRA) for matrices of the demo model, and the checkpoint that it would be merged into:
// W + strength · B · A in double precision, rounded to f32.

#include "compute/world.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sluice::test {

struct AdapterPair {
  std::string matrix;  // "transformer_blocks.0.attn1.to_q"
  std::int64_t in = 0, out = 0;
  Values down, up;  // [rank, in], [out, rank]
};

constexpr std::int64_t kAdapterRank = 4;

// Pairs for some of every kind of matrix in every block; the values are made up, from one seed.
std::vector<AdapterPair> small_adapter();

struct AdapterNames {
  std::string prefix = "diffusion_model.";
  std::map<std::string, std::string> metadata;
};
void write_adapter(const fs::path& file, const std::vector<AdapterPair>& pairs,
                   const AdapterNames& names = {});

// The demo model with the pairs in its matrices.
void write_merged_model(const fs::path& file, const std::vector<AdapterPair>& pairs, double strength);

}  // namespace sluice::test
