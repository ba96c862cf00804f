#pragma once
// Blocks of keys and values as the processor's products want their second operand.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace sluice::kernels {

// kᵀ of a block of keys, [dim, keys]; for bf16 pairs of neighbouring values of a key stay together, [dim / 2,
// keys, 2], as the processor's bf16 products want their second operand.
template <typename T>
void pack_keys(const T* from, std::int64_t row_stride, std::int64_t keys, std::int64_t dim, T* to) {
  constexpr std::int64_t kTogether = 4 / static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t kTile = 16;  // of both axes: a tile's lines stay in the first-level cache
  const std::int64_t words = dim / kTogether;
  for (std::int64_t word = 0; word < words; word += kTile) {
    for (std::int64_t key = 0; key < keys; ++key) {
      const T* source = from + key * row_stride;
      for (std::int64_t w = word; w < std::min(word + kTile, words); ++w)
        std::memcpy(to + (w * keys + key) * kTogether, source + w * kTogether, 4);
    }
  }
}

// A block of values, [keys, dim]; for bf16 pairs of neighbouring keys lie together, [keys / 2, dim, 2], an
// odd last key beside zeros.
template <typename T>
void pack_values(const T* from, std::int64_t row_stride, std::int64_t keys, std::int64_t dim, T* to) {
  if constexpr (std::is_same_v<T, float>) {
    for (std::int64_t key = 0; key < keys; ++key) std::copy_n(from + key * row_stride, dim, to + key * dim);
  } else {
    for (std::int64_t key = 0; key < keys; key += 2) {
      const T* first = from + key * row_stride;
      const T* second = key + 1 < keys ? first + row_stride : nullptr;
      T* pair = to + key * dim;
      for (std::int64_t i = 0; i < dim; ++i) {
        pair[2 * i] = first[i];
        pair[2 * i + 1] = second ? second[i] : T(0);
      }
    }
  }
}

}  // namespace sluice::kernels
