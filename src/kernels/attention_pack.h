#pragma once
// Blocks of keys and values as the processor's products want their second operand: `rows` rows of `dim`
// values, `stride` values apart.  Packing 512 rows costs as much as a few rows' products with them.

#include "kernels/lanes.h"

#include <cstdint>

namespace sluice::kernels {

// kᵀ of a block of keys, [dim, rows]; in bf16 pairs of neighbouring values of a key stay together, [dim / 2,
// rows, 2], as the processor's bf16 products want them.
void pack_keys(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, float* to);
void pack_keys(const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, Bf16* to);

// A block of values, [rows, dim]; in bf16 pairs of neighbouring rows lie together, [rows / 2, dim, 2], an odd
// last row beside zeros.
void pack_values(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, float* to);
void pack_values(const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, Bf16* to);

}  // namespace sluice::kernels
