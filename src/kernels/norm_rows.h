#pragma once
// The rows of norm.h, in f32 and bf16.

#include "kernels/lanes.h"

#include <cstdint>

namespace sluice::kernels {

enum class RowNorm {
  none,   // x
  rms,    // x / sqrt(mean(x²) + eps)
  layer,  // (x - mean) / sqrt(mean((x - mean)²) + eps)
};

struct RowNorming {
  RowNorm norm = RowNorm::rms;
  std::int64_t width = 0;
  float eps = 0;
};

// to = norm(x) · (1 + scale) + shift; scale, shift: nullptr for 0.  `to` may be x.
template <typename T>
void norm_modulate_row(const RowNorming& norming, const T* x, const T* scale, const T* shift, T* to);

struct RotationRow {  // of one token; nullptr: no rotation
  const float* cos = nullptr;
  const float* sin = nullptr;
  std::int64_t head_stride = 0;  // from one head's angles to the next's
};

// x = x / rms · weight, then x1, x2 = x1 cos - x2 sin, x2 cos + x1 sin for the halves x1, x2 of each head.
template <typename T>
void norm_rotate_row(T* x, std::int64_t width, std::int64_t heads, float eps, const float* weight,
                     const RotationRow& rotation);

}  // namespace sluice::kernels
