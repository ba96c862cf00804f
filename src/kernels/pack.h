#pragma once
// Operands laid out as the processor's products want their second one: what is multiplied together lies in
// words of 4 bytes, one f32 or two neighbouring bf16, and a row of words belongs to one place of the sum.

#include "kernels/lanes.h"

#include <cstddef>
#include <cstdint>

namespace sluice::kernels {

struct WordRows {  // at any address
  const std::byte* from = nullptr;
  std::int64_t stride = 0;  // bytes from one row to the next
  std::int64_t rows = 0;
  std::int64_t words = 0;  // of one row
};

// to[word · to_stride + row] = from[row][word]; to_stride in words.
void transpose_words(const WordRows& from, std::byte* to, std::int64_t to_stride);

// A panel of keys as MicroProduct takes them, kᵀ: [dim, rows]; in bf16 [dim / 2, rows, 2].  `stride` in
// values; dim a multiple of the values of a word.
void pack_keys(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, float* to);
void pack_keys(const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, Bf16* to);

// Rows of values in panels of 32 columns, the last one of 16 or 32 with zeros behind the last column:
// [panel, rows, columns]; in bf16 [panel, ceil(rows / 2), columns, 2], an odd last row beside zeros.
void pack_values(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, float* to);
void pack_values(const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, Bf16* to);

}  // namespace sluice::kernels
