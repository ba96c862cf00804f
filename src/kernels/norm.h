#pragma once
// RMS norms fused with what follows them in a transformer block, one pass over each row in f32, rounded once.

#include <ATen/core/Tensor.h>

namespace sluice::kernels {

// x / rms(x) · (1 + scale) + shift over the last axis; rms(x) = sqrt(mean(x²) + eps).  x: [batch, tokens,
// width], f32 or bf16; scale, shift: [batch or 1, tokens or 1, width] in x's dtype.
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
at::Tensor rms_norm_modulated(const at::Tensor& x, double eps, const at::Tensor& scale,
                              const at::Tensor& shift);
void rms_norm_rotate_(at::Tensor& x, double eps, const at::Tensor& weight, const SplitRotation& rotation);
}  // namespace reference

}  // namespace sluice::kernels
