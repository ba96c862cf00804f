#pragma once
// One value at a time, for plain twins.

#include "kernels/lanes.h"

#include <cmath>
#include <cstring>

namespace sluice::kernels::reference {

inline float plain_value(float x) {
  return x;
}
inline float plain_value(Bf16 x) {
  const std::uint32_t bits = std::uint32_t{x.bits} << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

// To nearest, ties to even; NaN stays NaN.
inline void round_to(float x, float& to) {
  to = x;
}
inline void round_to(float x, Bf16& to) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  to.bits = std::isnan(x) ? 0x7fc0 : static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace sluice::kernels::reference
