#pragma once
// A product of low rank beside a matrix: y += factor · (x · downᵀ) · upᵀ.  What an adapter (LoRA) adds to a
// linear layer, whatever its matrix is stored as: the matrix itself stays as it is.

#include <ATen/core/Tensor.h>

#include <vector>

namespace sluice::kernels {

struct LowRank {
  at::Tensor down;     // [rank, in], dense, any dtype that a matrix may have
  at::Tensor up;       // [out, rank]
  float factor = 1.0;  // strength · alpha / rank
};

using LowRanks = std::vector<LowRank>;

}  // namespace sluice::kernels
