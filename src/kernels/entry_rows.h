#pragma once
// Rows of queries or keys on their way into an attention: x / rms · weight, then the two halves of a head
// rotate against each other; in f32, rounded once.  What is not given is left out.

#include "kernels/lanes.h"

#include <cstdint>

namespace sluice::kernels {

template <typename T>  // float or Bf16
struct EntryRows {     // of one head
  const T* from = nullptr;
  std::int64_t stride = 0;  // values from one row to the next
  std::int64_t rows = 0;
  std::int64_t dim = 0;
  const float* factors = nullptr;  // 1 / rms, one a row
  const float* weight = nullptr;   // [dim], given where factors are
  const float* cos = nullptr;      // [rows][dim / 2]
  const float* sin = nullptr;
  std::int64_t angle_stride = 0;
};

// to: [rows][to_stride], zeros from dim up to `depth`.  May be the rows themselves.
void enter_rows(const EntryRows<float>& rows, float* to, std::int64_t to_stride, std::int64_t depth);
void enter_rows(const EntryRows<Bf16>& rows, Bf16* to, std::int64_t to_stride, std::int64_t depth);

// 1 / sqrt(mean(x²) + eps) of a row in pieces, one a head.
template <typename T>
struct EntryRow {
  const T* from = nullptr;
  std::int64_t heads = 0, head_stride = 0, dim = 0;
};
float inverse_rms(const EntryRow<float>& row, float eps);
float inverse_rms(const EntryRow<Bf16>& row, float eps);

}  // namespace sluice::kernels
