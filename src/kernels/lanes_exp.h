#pragma once
// exp of sixteen floats.

#include "kernels/lanes.h"

namespace sluice::kernels {

// x <- exp(x) for x <= 0, NaN stays: 2^n · e^r with n = round(x / ln 2), e^r by a polynomial of degree 6 that
// is exact to 2 units in the last place (Cephes' expf).  Below the smallest normal number: 0.
SLUICE_INLINE void exp_in_place(Lanes& x) {
  constexpr float kLowest = -87.0F;
  constexpr float kRound = 12582912.0F;  // 1.5 · 2^23: adding it leaves an integer in the low bits
  const Lanes shifted = x * 1.44269504F + kRound;
  const Lanes n = shifted - kRound;
  const Lanes r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  Lanes p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const LaneBits power = (reinterpret_cast<LaneBits>(shifted) + 127) << 23;
  const Lanes zero = {};
  x = x < kLowest ? zero : p * reinterpret_cast<Lanes>(power);
}

}  // namespace sluice::kernels
