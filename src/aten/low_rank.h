#pragma once
// A product of low rank beside a matrix: y += factor · (x · downᵀ) · upᵀ.  What an adapter (LoRA) adds to a
// linear layer, whatever its matrix is stored as: the matrix itself stays as it is.  Weights lend them,
// kernels multiply by them.

#include <ATen/core/Tensor.h>

#include <vector>

namespace sluice {

struct LowRank {
  at::Tensor down;   // [rank, in], dense, any dtype that a matrix may have
  at::Tensor up;     // [out, rank]
  float factor = 1;  // strength · alpha / rank
};

using LowRanks = std::vector<LowRank>;  // added in this order

}  // namespace sluice
