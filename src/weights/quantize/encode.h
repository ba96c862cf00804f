#pragma once
// The arithmetic of quantizing, over spans at any address: F32 throughout, as the reference has it.  Each
// function picks the widest vectors of this processor; its plain twin gives the same bits.

#include "base/nf4.h"

#include <sluice/checkpoint.h>

#include <cstdint>
#include <optional>
#include <span>

namespace sluice::weights {

// Floating-point formats that are quantized: BF16, F16, F32, F64 (rounded to F32 first).
bool can_quantize(Dtype dtype);

// The largest magnitude of the values; infinity or NaN where one is not finite.
float largest_magnitude(Dtype dtype, std::span<const std::byte> values);

// One code a value: F8_E4M3 of value / scale, nearest to even, at most 448.
void encode_f8_e4m3(Dtype dtype, std::span<const std::byte> values, float scale, std::span<std::byte> codes);

// The scale that brings `largest` to 448; 1 for 0.
float f8_e4m3_scale(float largest);

// `values`: whole blocks, except at a tensor's end.  absmax: one a block; codes: a byte for two values, the
// first of them in its high half, 7 in the half that is left over.  A block with a value that is not finite
// has an absmax that is not finite, and any codes.
void encode_nf4(Dtype dtype, std::span<const std::byte> values, std::span<float> absmax,
                std::span<std::byte> codes);

namespace reference {
float largest_magnitude(Dtype dtype, std::span<const std::byte> values);
void encode_f8_e4m3(Dtype dtype, std::span<const std::byte> values, float scale, std::span<std::byte> codes);
void encode_nf4(Dtype dtype, std::span<const std::byte> values, std::span<float> absmax,
                std::span<std::byte> codes);
}  // namespace reference

// The first value that is no number, for messages.
struct NonFiniteValue {
  std::size_t element = 0;
  bool nan = false;
};
std::optional<NonFiniteValue> first_non_finite(Dtype dtype, std::span<const std::byte> values);

// Between neighbours of kNf4Values; a value equal to a threshold takes the lower code.
inline constexpr std::array<float, 15> kNf4Thresholds = [] {
  std::array<float, 15> thresholds{};
  for (std::size_t i = 0; i < thresholds.size(); ++i) thresholds[i] = (kNf4Values[i] + kNf4Values[i + 1]) / 2;
  return thresholds;
}();

}  // namespace sluice::weights
