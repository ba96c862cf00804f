#pragma once
// y = residual + gate · activation(factor · Σ x · Wᵀ + bias) by micro_product.h, over tiles of the weights
// that are widened, packed, and used while they are in a second-level cache.  Memory is read ahead by the
// processor itself: asking for the next tile's lines while multiplying measured slower, however it was
// spread.

#include "kernels/epilogue.h"
#include "kernels/matrix.h"
#include "kernels/workspace.h"

#include <sluice/units.h>

#include <ATen/core/Tensor.h>

#include <span>

namespace sluice::kernels {

// What a product takes from the workspace at most.
Bytes product_scratch(std::int64_t threads);

struct Factors {
  at::Tensor x;   // [..., in], f32 or bf16, `in` filled up to an even number in bf16
  Matrix weight;  // [out, in]
};

// At least one pair of factors, all with the same tokens, dtype and `out`; y: [..., out] in that dtype; x and
// y with rows as rows.h says, at any address; bias: [out] in any dtype or undefined, rounded to x's.  Sums
// are f32, added up in the order of the factors and of `in`: neither the number of threads nor that of tokens
// changes a result.
void packed_product(std::span<const Factors> factors, const at::Tensor& bias, const Epilogue& epilogue,
                    Workspace& workspace, at::Tensor& y);

}  // namespace sluice::kernels
