#include "bytes/format/non_finite.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace sluice::bytes {
namespace {

// Counters as wide as the values make loops that fill whole vector registers; they are emptied before they
// can overflow.
template <typename Bits, typename IsNan, typename IsInfinite>
NonFinite count(std::span<const std::byte> values, IsNan is_nan, IsInfinite is_infinite) {
  constexpr std::size_t kBlock = std::min<std::uint64_t>(std::numeric_limits<Bits>::max(), 1 << 14);
  NonFinite found;
  const std::size_t total = values.size() / sizeof(Bits);
  for (std::size_t begin = 0; begin < total; begin += kBlock) {
    const std::size_t end = std::min(total, begin + kBlock);
    Bits nan = 0, infinite = 0;
    for (std::size_t i = begin; i < end; ++i) {
      Bits bits;
      std::memcpy(&bits, values.data() + i * sizeof(Bits), sizeof(Bits));
      nan = static_cast<Bits>(nan + (is_nan(bits) ? 1 : 0));
      infinite = static_cast<Bits>(infinite + (is_infinite(bits) ? 1 : 0));
    }
    found += {nan, infinite};
  }
  return found;
}

// Infinity at the largest exponent, NaN beyond it.
template <typename Bits, Bits kInfinity>
NonFinite count_ieee(std::span<const std::byte> values) {
  constexpr Bits kMagnitude = std::numeric_limits<Bits>::max() >> 1;
  return count<Bits>(
      values, [](Bits bits) { return static_cast<Bits>(bits & kMagnitude) > kInfinity; },
      [](Bits bits) { return static_cast<Bits>(bits & kMagnitude) == kInfinity; });
}

// Formats of one byte without infinity; NaN is where the bits under `kMask` are `kNan`.
template <std::uint8_t kMask, std::uint8_t kNan>
NonFinite count_nan(std::span<const std::byte> values) {
  return count<std::uint8_t>(
      values, [](std::uint8_t bits) { return (bits & kMask) == kNan; }, [](std::uint8_t) { return false; });
}

}  // namespace

Bytes judged_size(Dtype dtype) {
  return dtype == Dtype::C64 ? 4 : std::max(1u, dtype_bits(dtype) / 8);
}

NonFinite count_non_finite(Dtype dtype, std::span<const std::byte> values) {
  switch (dtype) {
    case Dtype::F64:
      return count_ieee<std::uint64_t, 0x7ff0'0000'0000'0000>(values);
    case Dtype::F32:
    case Dtype::C64:
      return count_ieee<std::uint32_t, 0x7f80'0000>(values);
    case Dtype::F16:
      return count_ieee<std::uint16_t, 0x7c00>(values);
    case Dtype::BF16:
      return count_ieee<std::uint16_t, 0x7f80>(values);
    case Dtype::F8_E5M2:
      return count_ieee<std::uint8_t, 0x7c>(values);
    case Dtype::F8_E4M3:
      return count_nan<0x7f, 0x7f>(values);
    case Dtype::F8_E8M0:
      return count_nan<0xff, 0xff>(values);
    case Dtype::F8_E4M3FNUZ:
    case Dtype::F8_E5M2FNUZ:
      return count_nan<0xff, 0x80>(values);
    default:
      return {};
  }
}

}  // namespace sluice::bytes
