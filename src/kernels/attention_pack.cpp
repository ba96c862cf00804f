#include "kernels/attention_pack.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace sluice::kernels {
namespace {

using LaneIndices = std::int32_t __attribute__((vector_size(4 * kLanes)));

// Two rows of a square exchange the blocks of `kStep` columns that lie off its diagonal.
template <std::int64_t kStep>
SLUICE_INLINE void exchange(LaneBits& a, LaneBits& b) {
  LaneIndices low, high;  // constants once unrolled
  for (std::int64_t i = 0; i < kLanes; ++i) {
    const bool of_a = (i & kStep) == 0;
    low[i] = static_cast<std::int32_t>(of_a ? i : kLanes + i - kStep);
    high[i] = static_cast<std::int32_t>(of_a ? i + kStep : kLanes + i);
  }
  const LaneBits first = __builtin_shuffle(a, b, low);
  b = __builtin_shuffle(a, b, high);
  a = first;
}

template <std::int64_t kStep>
SLUICE_INLINE void exchange_rows(LaneBits* rows) {
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kLanes; ++i) {
    if ((i & kStep) == 0) exchange<kStep>(rows[i], rows[i + kStep]);
  }
}

// Words of 4 bytes; strides in bytes.
SLUICE_INLINE void transpose_tile(const std::byte* from, std::int64_t from_stride, std::byte* to,
                                  std::int64_t to_stride) {
  LaneBits rows[kLanes];
  for (std::int64_t i = 0; i < kLanes; ++i) std::memcpy(&rows[i], from + i * from_stride, sizeof rows[i]);
  exchange_rows<1>(rows);
  exchange_rows<2>(rows);
  exchange_rows<4>(rows);
  exchange_rows<8>(rows);
  for (std::int64_t i = 0; i < kLanes; ++i) std::memcpy(to + i * to_stride, &rows[i], sizeof rows[i]);
}

struct Words {  // rows of words; strides in bytes
  const std::byte* from;
  std::int64_t from_stride;
  std::int64_t rows, columns;
};

SLUICE_INLINE void transpose_part(const Words& words, std::int64_t row, std::int64_t column, std::byte* to) {
  for (std::int64_t c = column; c < std::min(column + kLanes, words.columns); ++c) {
    for (std::int64_t r = row; r < std::min(row + kLanes, words.rows); ++r)
      std::memcpy(to + 4 * (c * words.rows + r), words.from + r * words.from_stride + 4 * c, 4);
  }
}

// to: [columns, rows].
SLUICE_INLINE void transpose_body(const Words& words, std::byte* to) {
  for (std::int64_t row = 0; row < words.rows; row += kLanes) {
    for (std::int64_t column = 0; column < words.columns; column += kLanes) {
      if (row + kLanes > words.rows || column + kLanes > words.columns) {
        transpose_part(words, row, column, to);
        continue;
      }
      transpose_tile(words.from + row * words.from_stride + 4 * column, words.from_stride,
                     to + 4 * (column * words.rows + row), 4 * words.rows);
    }
  }
}

SLUICE_INLINE void interleave_body(const Bf16* first, const Bf16* second, std::int64_t count, Bf16* to) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    LaneHalves a, b;
    std::memcpy(&a, first + i, sizeof a);
    std::memcpy(&b, second + i, sizeof b);
    const LaneBits pairs = __builtin_convertvector(a, LaneBits) | __builtin_convertvector(b, LaneBits) << 16;
    std::memcpy(to + 2 * i, &pairs, sizeof pairs);
  }
  for (; i < count; ++i) to[2 * i] = first[i], to[2 * i + 1] = second[i];
}

SLUICE_COMPILE(void, transpose, (const Words& words, std::byte* to), (words, to))
SLUICE_COMPILE(void, interleave, (const Bf16* first, const Bf16* second, std::int64_t count, Bf16* to),
               (first, second, count, to))

template <typename T>
void transpose(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, T* to) {
  static const auto best = best_of(k_transpose);
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  best({.from = reinterpret_cast<const std::byte*>(from),
        .from_stride = stride * kSize,
        .rows = rows,
        .columns = dim * kSize / 4},
       reinterpret_cast<std::byte*>(to));
}

}  // namespace

void pack_keys(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, float* to) {
  transpose(from, stride, rows, dim, to);
}

void pack_keys(const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, Bf16* to) {
  transpose(from, stride, rows, dim, to);
}

void pack_values(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, float* to) {
  for (std::int64_t row = 0; row < rows; ++row) std::copy_n(from + row * stride, dim, to + row * dim);
}

void pack_values(const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, Bf16* to) {
  static const auto best = best_of(k_interleave);
  std::int64_t row = 0;
  for (; row + 1 < rows; row += 2) best(from + row * stride, from + (row + 1) * stride, dim, to + row * dim);
  if (row == rows) return;
  for (std::int64_t i = 0; i < dim; ++i) {
    to[row * dim + 2 * i] = from[row * stride + i];
    to[row * dim + 2 * i + 1] = Bf16{0};
  }
}

}  // namespace sluice::kernels
