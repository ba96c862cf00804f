#pragma once
// The floating-point formats of safetensors as bits, to and from F32.  Selections instead of branches, so
// that loops over arrays vectorize without instructions beyond the baseline.  From F32 the nearest value is
// taken, of two the even one; NaN stays NaN.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace sluice::bytes {

inline constexpr std::uint32_t kF32Sign = 0x80000000, kF32Infinity = 0x7f800000;

// condition ? yes : no with a mask: a conditional whose arms hold floating-point arithmetic becomes a branch,
// because that arithmetic may trap, and no loop with a branch vectorizes.
inline std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  return no ^ ((yes ^ no) & (0u - static_cast<std::uint32_t>(condition)));
}

inline float f32_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t bf16_from_f32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  const bool nan = (bits & ~kF32Sign) > kF32Infinity;
  return static_cast<std::uint16_t>(select(nan, bits | 0x400000, rounded) >> 16);
}

// A format of 16 bits or fewer with a sign and an exponent that is narrower than that of F32.
template <unsigned kExponentBits, unsigned kMantissaBits>
struct SmallFloat {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr unsigned kShift = 23 - kMantissaBits;
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias) << 23;
  static constexpr std::uint32_t kLeastNormal = kRebias + (1u << 23);  // as F32
  static constexpr std::uint32_t kMagnitude = (1u << (kExponentBits + kMantissaBits)) - 1;

  static std::uint32_t sign(std::uint32_t f32_bits) {
    return (f32_bits & kF32Sign) >> (31 - kExponentBits - kMantissaBits);
  }

  // Bits of a finite magnitude as those of F32.  Below the least normal value the mantissa counts as if it
  // were one of the least exponent, and the one too much is subtracted, which is exact.
  static std::uint32_t widen(std::uint32_t magnitude) {
    const std::uint32_t shifted = (magnitude << kShift) + kRebias;
    const float subnormal = std::bit_cast<float>(shifted + (1u << 23)) - std::bit_cast<float>(kLeastNormal);
    return select(shifted < kLeastNormal, std::bit_cast<std::uint32_t>(subnormal), shifted);
  }

  // The reverse for a finite magnitude, rounded; may come out as more than the format's largest.  Adding the
  // number whose last bit is the least subnormal's makes the processor round those.
  static std::uint32_t narrow(std::uint32_t magnitude) {
    constexpr std::uint32_t kMagic = kLeastNormal + (kShift << 23);
    const std::uint32_t rounded =
        magnitude - kRebias + ((1u << (kShift - 1)) - 1) + (magnitude >> kShift & 1);
    const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic);
    return select(magnitude < kLeastNormal, std::bit_cast<std::uint32_t>(sum) - kMagic, rounded >> kShift);
  }
};

// F16 and F8_E5M2 have infinities and NaNs where F32 has them: at the largest exponent.
template <unsigned kExponentBits, unsigned kMantissaBits>
struct IeeeFloat : SmallFloat<kExponentBits, kMantissaBits> {
  using Base = SmallFloat<kExponentBits, kMantissaBits>;
  static constexpr std::uint32_t kInfinity = Base::kMagnitude + 1 - (1u << kMantissaBits);

  static float to_f32(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & Base::kMagnitude;
    const std::uint32_t special = kF32Infinity | (magnitude << Base::kShift);
    const std::uint32_t sign = (bits & (Base::kMagnitude + 1)) << (31 - kExponentBits - kMantissaBits);
    return std::bit_cast<float>(sign | select(magnitude >= kInfinity, special, Base::widen(magnitude)));
  }

  static std::uint32_t from_f32(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & ~kF32Sign;
    const std::uint32_t narrow = Base::narrow(magnitude);
    // The quiet bit and what is left of the payload.
    const std::uint32_t nan =
        kInfinity | 1u << (kMantissaBits - 1) | (magnitude >> Base::kShift & ((1u << kMantissaBits) - 1));
    // From the largest finite value and half a step on (which is even) it is infinity.
    constexpr std::uint32_t kOverflow =
        (static_cast<std::uint32_t>(Base::kBias + 128) << 23) - (1u << (Base::kShift - 1));
    const std::uint32_t finite = select(magnitude >= kOverflow, kInfinity, narrow);
    return Base::sign(bits) | select(magnitude > kF32Infinity, nan, finite);
  }
};

using F16Format = IeeeFloat<5, 10>;
using F8E5M2Format = IeeeFloat<5, 2>;

// Has no infinities: its largest value is 448, and the one NaN is all ones.  What is larger, infinity too,
// becomes 448, as PyTorch has it.
struct F8E4M3Format : SmallFloat<4, 3> {
  static constexpr std::uint32_t kNan = 0x7f;
  static constexpr auto kSaturated = std::bit_cast<std::uint32_t>(448.0f);

  static float to_f32(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & kMagnitude;
    const std::uint32_t nan =
        select(magnitude == kNan, 0x7fc00000, 0);  // what it would be otherwise is lost in it
    return std::bit_cast<float>((bits & 0x80) << 24 | widen(magnitude) | nan);
  }

  static std::uint32_t from_f32(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & ~kF32Sign;
    const std::uint32_t nan = select(magnitude > kF32Infinity, kNan, 0);
    return sign(bits) | narrow(std::min(magnitude, kSaturated)) | nan;
  }
};

// An F32 from which any narrower format rounds as it would from the F64: cut off towards zero, with the last
// bit set if something was cut ("round to odd").
inline float f32_for_rounding(double value) {
  const auto nearest = static_cast<float>(value);
  const double kept = nearest;
  const auto away = static_cast<std::uint32_t>(std::abs(kept) > std::abs(value));
  const auto inexact = static_cast<std::uint32_t>(kept != value);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(nearest) - away) | inexact);
}

}  // namespace sluice::bytes
