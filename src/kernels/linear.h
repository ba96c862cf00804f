#pragma once
// y = x · Wᵀ + b, computed in the dtype of x straight from the weight's bytes.  The weight is widened a tile
// at a time into reused scratch, so no copy of it ever exists.  Products are oneDNN's in both dtypes: small
// ones over tiles that are packed while they are hot (packed_product.h); on processors without AVX-512 (bf16:
// without its bf16 products) its large one, over up to 64 MiB of widened rows.

#include "kernels/epilogue.h"
#include "kernels/matrix.h"

#include <ATen/core/Tensor.h>

namespace sluice::kernels {

// x: [..., in], weight: [out, in], bias: [out] or undefined.  Returns [..., out] in x's dtype (f32 or bf16).
// Tensors may lie at any address; the result is the same.
at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias,
                  Epilogue epilogue = Epilogue::none);

namespace reference {
// The plain twin: widens the whole weight.
at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias,
                  Epilogue epilogue = Epilogue::none);
}  // namespace reference

}  // namespace sluice::kernels
