#include "kernels/pack.h"

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

SLUICE_INLINE void transpose_part(const WordRows& x, std::int64_t row, std::int64_t word, std::byte* to,
                                  std::int64_t to_stride) {
  for (std::int64_t w = word; w < std::min(word + kLanes, x.words); ++w) {
    for (std::int64_t r = row; r < std::min(row + kLanes, x.rows); ++r)
      std::memcpy(to + 4 * (w * to_stride + r), x.from + r * x.stride + 4 * w, 4);
  }
}

SLUICE_INLINE void transpose_body(const WordRows& x, std::byte* to, std::int64_t to_stride) {
  for (std::int64_t row = 0; row < x.rows; row += kLanes) {
    for (std::int64_t word = 0; word < x.words; word += kLanes) {
      if (row + kLanes > x.rows || word + kLanes > x.words) {
        transpose_part(x, row, word, to, to_stride);
      } else {
        transpose_tile(x.from + row * x.stride + 4 * word, x.stride, to + 4 * (word * to_stride + row),
                       4 * to_stride);
      }
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

SLUICE_COMPILE(void, transpose, (const WordRows& x, std::byte* to, std::int64_t to_stride),
               (x, to, to_stride))
SLUICE_COMPILE(void, interleave, (const Bf16* first, const Bf16* second, std::int64_t count, Bf16* to),
               (first, second, count, to))

template <typename T>
void transpose(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, T* to) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  transpose_words({.from = reinterpret_cast<const std::byte*>(from),
                   .stride = stride * kSize,
                   .rows = rows,
                   .words = dim * kSize / 4},
                  reinterpret_cast<std::byte*>(to), rows);
}

}  // namespace

void transpose_words(const WordRows& from, std::byte* to, std::int64_t to_stride) {
  best_of(k_transpose)(from, to, to_stride);
}

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
  const auto best = best_of(k_interleave);
  std::int64_t row = 0;
  for (; row + 1 < rows; row += 2) best(from + row * stride, from + (row + 1) * stride, dim, to + row * dim);
  if (row == rows) return;
  for (std::int64_t i = 0; i < dim; ++i) {
    to[row * dim + 2 * i] = from[row * stride + i];
    to[row * dim + 2 * i + 1] = Bf16{0};
  }
}

}  // namespace sluice::kernels
