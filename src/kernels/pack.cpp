#include "kernels/pack.h"

#include "kernels/micro_product.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

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

// Sixteen words, each of a value of one row, or of a value of `first` and the one of `second` below it.
SLUICE_INLINE void put_words(const float* first, const float*, float* to) {
  std::memcpy(to, first, 4 * kLanes);
}
SLUICE_INLINE void put_words(const Bf16* first, const Bf16* second, Bf16* to) {
  LaneHalves a, b;
  std::memcpy(&a, first, sizeof a);
  std::memcpy(&b, second, sizeof b);
  const LaneBits pairs = __builtin_convertvector(a, LaneBits) | __builtin_convertvector(b, LaneBits) << 16;
  std::memcpy(to, &pairs, sizeof pairs);
}

// The words of columns [column, column + 16), as far as there are any, else zeros.
template <typename T>
SLUICE_INLINE void put_columns(const T* first, const T* second, std::int64_t column, std::int64_t dim,
                               T* to) {
  if (column + kLanes <= dim) return put_words(first + column, second + column, to);
  T a[kLanes] = {}, b[kLanes] = {};
  if (column < dim) {
    std::copy(first + column, first + dim, a);
    std::copy(second + column, second + dim, b);
  }
  put_words(a, b, to);
}

template <typename T>
SLUICE_INLINE void pack_values_of(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t dim,
                                  const T* zeros, T* to) {
  constexpr std::int64_t kWord = kWordValues<T>;
  const std::int64_t row_words = (rows + kWord - 1) / kWord;
  for (std::int64_t word = 0; word < row_words; ++word) {
    const T* first = from + word * kWord * stride;
    const T* second = word * kWord + 1 < rows ? first + stride : zeros;
    for (std::int64_t column = 0; column < dim; column += kPanelColumns) {
      const std::int64_t columns = panel_columns(column, dim);
      T* panel = to + (column * row_words + word * columns) * kWord;
      for (std::int64_t i = 0; i < columns; i += kLanes)
        put_columns(first, second, column + i, dim, panel + i * kWord);
    }
  }
}
SLUICE_INLINE void values_f32_body(const float* from, std::int64_t stride, std::int64_t rows,
                                   std::int64_t dim, const float* zeros, float* to) {
  pack_values_of(from, stride, rows, dim, zeros, to);
}
SLUICE_INLINE void values_bf16_body(const Bf16* from, std::int64_t stride, std::int64_t rows,
                                    std::int64_t dim, const Bf16* zeros, Bf16* to) {
  pack_values_of(from, stride, rows, dim, zeros, to);
}

SLUICE_COMPILE(void, transpose, (const WordRows& x, std::byte* to, std::int64_t to_stride),
               (x, to, to_stride))
SLUICE_COMPILE(void, values_f32,
               (const float* from, std::int64_t stride, std::int64_t rows, std::int64_t dim,
                const float* zeros, float* to),
               (from, stride, rows, dim, zeros, to))
SLUICE_COMPILE(void, values_bf16,
               (const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, const Bf16* zeros,
                Bf16* to),
               (from, stride, rows, dim, zeros, to))

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
  best_of(k_values_f32)(from, stride, rows, dim, from, to);
}

void pack_values(const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, Bf16* to) {
  const std::vector<Bf16> zeros(static_cast<std::size_t>(rows % 2 == 0 ? 0 : dim));
  best_of(k_values_bf16)(from, stride, rows, dim, zeros.data(), to);
}

}  // namespace sluice::kernels
