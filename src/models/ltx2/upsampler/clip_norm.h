#pragma once
// The norm of the upsampler: groups of channels over a whole clip (or a frame), then silu.  Exact: every
// place is read before the first is changed, so a clip may not be normed in pieces.

#include <ATen/core/Tensor.h>

namespace sluice::ltx2 {

struct GroupNorm {  // [channels] each
  at::Tensor weight, bias;
};

// What the statistics are taken over.
enum class NormSpan { clip, frame };

// clip: [frames, height, width, channels], contiguous, f32 or bf16, changed in place to
//   silu((x - mean) / sqrt(variance + 1e-5) · weight + bias (+ skip)),
// mean and variance over 1/32 of the channels (kernels/group_norm.h).  `skip`: of the clip's shape and dtype,
// or undefined.
void norm_silu(const GroupNorm& norm, const at::Tensor& clip, NormSpan span, const at::Tensor& skip = {});

}  // namespace sluice::ltx2
