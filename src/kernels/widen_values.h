#pragma once
// Stored values, from any address, as f32 or bf16: what f32 arithmetic gives (the value itself, code · scale,
// table[code] · absmax), rounded once.  In vectors for every processor in one program; NaN stays NaN.

#include "kernels/lanes.h"

#include <cstddef>
#include <cstdint>

namespace sluice::kernels {

enum class Stored { f32, bf16, f16, fp8, nf4 };

struct StoredValues {
  Stored format = Stored::f32;
  const std::byte* values = nullptr;
  const std::byte* scales =
      nullptr;  // fp8: one f32 or nullptr for 1; nf4: one f32 for 64 values; else unused
};

// Values [first, first + count) in storage order.
void widen_values(const StoredValues& from, std::int64_t first, std::int64_t count, float* to);
void widen_values(const StoredValues& from, std::int64_t first, std::int64_t count, Bf16* to);

namespace reference {
// The plain twins: value by value.
void widen_values(const StoredValues& from, std::int64_t first, std::int64_t count, float* to);
void widen_values(const StoredValues& from, std::int64_t first, std::int64_t count, Bf16* to);
}  // namespace reference

}  // namespace sluice::kernels
