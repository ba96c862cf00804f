#pragma once
// Puts the bytes of a part where they belong in its target: casts, transposes and gathers, in any pieces.

#include "bytes/plan/load_plan_state.h"

#include <span>

namespace sluice::bytes {

// True if values of `from` can be turned into `to` (see CastRule).
bool can_cast(Dtype from, Dtype to);

// Casts elements one by one.  `from` holds whole elements and may have any address; `to` has room for as
// many.  Equal dtypes are copied.
void cast_elements(Dtype from_dtype, std::span<const std::byte> from, Dtype to_dtype,
                   std::span<std::byte> to);

// Copies the piece of `part` that begins `part_offset` bytes into its box (whole elements) to its places in
// `target`, the memory of the whole target tensor.
void copy_piece(const Part& part, const TargetTensor& tensor, Bytes part_offset,
                std::span<const std::byte> piece, std::span<std::byte> target);

// What brings `largest` to 448, the largest value of F8_E4M3; 1 for 0.  The least normal number at least:
// below it a scale has too few bits to do that.
float f8_e4m3_scale(double largest);

// value / scale in F32, rounded to F8_E4M3, with scale = absmax / 448 (1 for a tensor of zeros).  Returns the scale.
// Error(non_finite) naming the tensor for NaN and infinities.
float quantize_to_f8_e4m3(Dtype from_dtype, std::span<const std::byte> from, std::span<std::byte> to,
                          std::string_view name);

}  // namespace sluice::bytes
