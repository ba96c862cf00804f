#pragma once
// y = residual + gate · activation(x · Wᵀ + bias) by micro_product.h, over tiles of the weight that are
// widened, packed, and used while they are in a second-level cache.  Memory is read ahead by the processor
// itself: asking for the next tile's lines while multiplying measured slower, however it was spread.

#include "kernels/epilogue.h"
#include "kernels/matrix.h"
#include "kernels/workspace.h"

#include <sluice/units.h>

#include <ATen/core/Tensor.h>

namespace sluice::kernels {

// What a product takes from the workspace at most.
Bytes product_scratch(std::int64_t threads);

// x: [..., in], f32 or bf16, `in` even in bf16; y: [..., out] in x's dtype; both with rows as rows.h says, at
// any address; bias: [out] in any dtype or undefined, rounded to x's.  Sums are f32, added up in the order of
// `in`: neither the number of threads nor that of tokens changes a result.
void packed_product(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias,
                    const Epilogue& epilogue, Workspace& workspace, at::Tensor& y);

}  // namespace sluice::kernels
