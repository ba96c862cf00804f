#pragma once
// y = x · Wᵀ + b, computed in the dtype of x straight from the weight's bytes.  A weight of another dtype is
// widened a tile of rows at a time into reused scratch, so no copy of the weight ever exists.  Products are
// oneDNN's in both dtypes: its f32 product runs at more than twice the rate of LibTorch's default here
// (bench/step).

#include "kernels/matrix.h"

#include <ATen/core/Tensor.h>

namespace sluice::kernels {

enum class Epilogue { none, gelu_tanh };

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
