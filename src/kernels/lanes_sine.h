#pragma once
// sin² of a vector of floats.

#include "kernels/lanes.h"

namespace sluice::kernels {

// What squared_sine holds for: beyond, the products of its reduction are no longer exact.
inline constexpr float kSineRange = 20000;

// sin²(x) for |x| <= kSineRange; NaN stays, infinities give NaN.  x - n · π with n = round(x / π), where π is
// the sum of three floats whose first two have so few bits that n times them is exact with or without FMA;
// the sign that n may change falls to the square.  sin by a polynomial of degree 9 on [-π/2, π/2], exact to
// 6e-9 of the value: 4 units in the last place of sin², or 1e-10 where the value is below 1e-3.
template <typename Floats>  // a vector of any width
SLUICE_INLINE void squared_sine(const Floats& x, Floats& to) {
  constexpr float kRound = 12582912.0F;  // 1.5 · 2^23: adding it leaves an integer in the low bits
  const Floats n = (x * 0.318309886F + kRound) - kRound;
  const Floats r = ((x - n * 3.140625F) - n * 9.67502593994140625e-4F) - n * 1.50995799e-7F;
  const Floats s = r * r;
  Floats p = s * 2.6051775e-6F - 1.9809345e-4F;
  p = p * s + 8.333063e-3F;
  p = p * s - 1.666666e-1F;
  const Floats sine = p * s * r + r;
  to = sine * sine;
}

}  // namespace sluice::kernels
