#pragma once
// y = residual + gate · activation(factor · (x · Wᵀ + Σ adapters) + b), computed in the dtype of x straight
// from the weight's bytes, sums in f32, rounded once.  The weight is widened a tile at a time into reused
// scratch, so no copy of it ever exists (packed_product.h); nor one with adapters added to it (low_rank.h).

#include "aten/low_rank.h"
#include "kernels/epilogue.h"
#include "kernels/matrix.h"
#include "kernels/workspace.h"

#include <ATen/core/Tensor.h>

#include <span>

namespace sluice::kernels {

// What a layer multiplies by and adds.
struct LinearWeights {
  Matrix matrix;                           // [out, in]
  at::Tensor bias;                         // [out]; undefined: none
  std::span<const LowRank> adapters = {};  // for a matrix in any format
};

// x: [..., in]; y: [..., out] in x's dtype (f32 or bf16) with rows as rows.h says; it may be the epilogue's
// residual, not x.  Tensors may lie at any address; the result is the same.
void linear(const at::Tensor& x, const LinearWeights& weights, const Epilogue& epilogue, Workspace& workspace,
            at::Tensor& y);
// The same into memory of its own.
at::Tensor linear(const at::Tensor& x, const LinearWeights& weights, const Epilogue& epilogue = {});

// Without adapters.
void linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, const Epilogue& epilogue,
            Workspace& workspace, at::Tensor& y);
at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias,
                  const Epilogue& epilogue = {});

namespace reference {
// The plain twin: widens the whole weight.
at::Tensor linear(const at::Tensor& x, const LinearWeights& weights, const Epilogue& epilogue = {});
at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias,
                  const Epilogue& epilogue = {});
}  // namespace reference

}  // namespace sluice::kernels
