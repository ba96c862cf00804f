#pragma once
// Formats of 8 and 16 bits, slowly and plainly: every value by its definition, rounding by looking among all
// values.  The twin of what src/bytes does with bits.

#include <sluice/checkpoint.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace sluice::test {

class SmallFloats {
 public:
  // F16, BF16, F8_E5M2 or F8_E4M3.
  explicit SmallFloats(Dtype dtype) : has_infinity_(dtype != Dtype::F8_E4M3) {
    switch (dtype) {
      case Dtype::F16:
        exponent_bits_ = 5, mantissa_bits_ = 10;
        break;
      case Dtype::BF16:
        exponent_bits_ = 8, mantissa_bits_ = 7;
        break;
      case Dtype::F8_E5M2:
        exponent_bits_ = 5, mantissa_bits_ = 2;
        break;
      default:
        exponent_bits_ = 4, mantissa_bits_ = 3;
    }
    // The finite values, and where infinity would be if it were a number.
    const std::uint32_t codes = has_infinity_ ? infinity() + 1 : infinity() + (1u << mantissa_bits_) - 1;
    for (std::uint32_t code = 0; code < codes; ++code) magnitudes_.push_back(magnitude(code));
  }

  std::uint32_t codes() const { return 2 * sign_bit(); }  // how many there are

  double decode(std::uint32_t code) const {
    const double sign = code & sign_bit() ? -1 : 1;
    const std::uint32_t rest = code & (sign_bit() - 1);
    if (is_nan(code)) return std::numeric_limits<double>::quiet_NaN();
    if (has_infinity_ && rest == infinity()) return sign * std::numeric_limits<double>::infinity();
    return sign * magnitude(rest);
  }

  bool is_nan(std::uint32_t code) const {
    const std::uint32_t rest = code & (sign_bit() - 1);
    return has_infinity_ ? rest > infinity() : rest == sign_bit() - 1;
  }

  // The nearest, of two the one whose code is even; too large is infinity, or the largest where there is
  // none. `value` is no NaN.
  std::uint32_t encode(double value) const {
    const double wanted = std::abs(value);
    const std::uint32_t sign = std::signbit(value) ? sign_bit() : 0;
    auto above = std::ranges::lower_bound(magnitudes_, wanted);
    if (above == magnitudes_.end()) return sign | static_cast<std::uint32_t>(magnitudes_.size() - 1);
    const auto code = static_cast<std::uint32_t>(above - magnitudes_.begin());
    if (*above == wanted) return sign | code;
    const double up = *above - wanted, down = wanted - magnitudes_[code - 1];
    const bool take_lower = down < up || (down == up && code % 2 == 1);
    return sign | (take_lower ? code - 1 : code);
  }

  // Every magnitude, those halfway between neighbours, and the F64 next to each.
  std::vector<double> borders() const {
    std::vector<double> borders;
    for (std::size_t i = 0; i + 1 < magnitudes_.size(); ++i) {
      for (double value : {magnitudes_[i], (magnitudes_[i] + magnitudes_[i + 1]) / 2}) {
        for (double near : {std::nextafter(value, 0.0), value, std::nextafter(value, 1e300)}) {
          borders.push_back(near);
          borders.push_back(-near);
        }
      }
    }
    return borders;
  }

 private:
  std::uint32_t sign_bit() const { return 1u << (exponent_bits_ + mantissa_bits_); }
  std::uint32_t infinity() const { return ((1u << exponent_bits_) - 1) << mantissa_bits_; }

  double magnitude(std::uint32_t code) const {
    const int bias = (1 << (exponent_bits_ - 1)) - 1;
    const int exponent = static_cast<int>(code >> mantissa_bits_);
    const double mantissa = code & ((1u << mantissa_bits_) - 1);
    const double one = 1u << mantissa_bits_;
    return exponent == 0 ? std::ldexp(mantissa / one, 1 - bias)
                         : std::ldexp(1 + mantissa / one, exponent - bias);
  }

  bool has_infinity_;
  unsigned exponent_bits_ = 0, mantissa_bits_ = 0;
  std::vector<double> magnitudes_;
};

}  // namespace sluice::test
