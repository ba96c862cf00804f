#pragma once
// y = epilogue(x · Wᵀ + bias) by small products over tiles of the weight that are widened straight into the
// layout of these products, and used while they are in a second-level cache.

#include "kernels/epilogue.h"
#include "kernels/matrix.h"

#include <sluice/units.h>

#include <ATen/core/Tensor.h>

namespace sluice::kernels {

inline constexpr Bytes kPackedScratch = KiB(820);  // that a thread takes, at most

// x: [tokens, in], contiguous, f32 or bf16 as has_small_products() allows; bias: f32 [out] or undefined; y:
// [tokens, out] in x's dtype, contiguous.  Sums are f32, added up in an order that depends on `in` alone:
// neither the number of threads nor that of tokens changes a result.
void packed_product(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, Epilogue epilogue,
                    at::Tensor& y);

}  // namespace sluice::kernels
