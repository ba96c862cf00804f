#pragma once
// RMS norms fused with what follows them in a transformer block, one pass over each row in f32, rounded once.

#include "kernels/norm_rows.h"
#include "kernels/row_vectors.h"

#include <ATen/core/Tensor.h>

namespace sluice::kernels {

struct Modulated {
  RowNorm norm = RowNorm::rms;
  double eps = 0;
  RowVectors scale, shift;  // in x's dtype; undefined: 0
};

// y = norm(x) · (1 + scale) + shift over the last axis.  x, y: [batch, tokens, width], f32 or bf16, with rows
// as kernels/rows.h says; y may be x.
void norm_modulated(const at::Tensor& x, const Modulated& by, at::Tensor& y);

// The same with an RMS norm into memory of its own; scale, shift: [batch or 1, tokens or 1, width].
at::Tensor rms_norm_modulated(const at::Tensor& x, double eps, const at::Tensor& scale,
                              const at::Tensor& shift);

// cos, sin: f32 [batch or 1, heads, tokens, head width / 2]; undefined: no rotation.
struct SplitRotation {
  at::Tensor cos, sin;
};

// In place: x / rms(x) · weight over the full width, then the two halves of each head rotate against each
// other.  x: [batch, tokens, width] as a linear layer leaves it, f32 or bf16; weight: [width], any dtype.
void rms_norm_rotate_(at::Tensor& x, double eps, const at::Tensor& weight, const SplitRotation& rotation);

namespace reference {
// The plain twins.
at::Tensor norm_modulated(const at::Tensor& x, const Modulated& by);
at::Tensor rms_norm_modulated(const at::Tensor& x, double eps, const at::Tensor& scale,
                              const at::Tensor& shift);
void rms_norm_rotate_(at::Tensor& x, double eps, const at::Tensor& weight, const SplitRotation& rotation);
}  // namespace reference

}  // namespace sluice::kernels
