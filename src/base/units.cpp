#include <sluice/error.h>
#include <sluice/units.h>

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

namespace sluice {
namespace {

// Consumes a number from the front of `text`; NaN if there is none.
double take_number(std::string_view& text) {
  double number = std::numeric_limits<double>::quiet_NaN();
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc()) return std::numeric_limits<double>::quiet_NaN();
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

Rational reduced(std::int64_t num, std::int64_t den) {
  std::int64_t divisor = std::gcd(num, den);
  return {num / divisor, den / divisor};
}

// Nearest fraction to x whose denominator is at most `limit`.
Rational nearest_fraction(double x, std::int64_t limit) {
  Rational best{std::llround(x), 1};
  for (std::int64_t den = 1; den <= limit; ++den) {
    Rational candidate{std::llround(x * static_cast<double>(den)), den};
    if (std::abs(candidate.value() - x) < std::abs(best.value() - x) - 1e-15) best = candidate;
  }
  return reduced(best.num, best.den);
}

Error bad_rate(std::string_view text) {
  return Error(ErrorKind::usage, fmt::format("'{}' is no frame rate", text),
               "give frames per second above 0 and at most 1000, such as 24, 23.976 or 30000/1001");
}

}  // namespace

std::string format_bytes(Bytes bytes) {
  static constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

Bytes parse_bytes(std::string_view text) {
  std::string_view rest = text;
  double number = take_number(rest);
  int shift = 0;
  if (!rest.empty()) {
    size_t power = std::string_view("kmgtKMGT").find(rest.front());
    if (power != std::string_view::npos) {
      shift = 10 * (static_cast<int>(power % 4) + 1);
      rest.remove_prefix(1);
    }
    if (rest == "iB" || rest == "B" || rest == "ib" || rest == "b") rest = {};
  }
  double value = number * std::exp2(shift);
  if (!rest.empty() || !(value >= 0) || value >= 9e18) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is no size", text), "write it like 512MiB, 10G or 4096");
  }
  return static_cast<Bytes>(std::llround(value));
}

Rational parse_frame_rate(std::string_view text) {
  std::string_view rest = text;
  double number = take_number(rest);
  if (!rest.empty() && rest.front() == '/') {
    rest.remove_prefix(1);
    double below = take_number(rest);
    bool whole = std::floor(number) == number && std::floor(below) == below;
    if (!rest.empty() || !whole || !(number > 0) || !(below > 0) || number > 1e9 || below > 1e6 ||
        number / below > 1000) {
      throw bad_rate(text);
    }
    return reduced(static_cast<std::int64_t>(number), static_cast<std::int64_t>(below));
  }
  if (!rest.empty() || !(number >= 1e-3) || number > 1000) throw bad_rate(text);
  if (std::floor(number) == number) return {static_cast<std::int64_t>(number), 1};
  // 23.976, 23.98, 29.97, 59.94, 119.88: two or three decimals of n / 1.001 for a whole n.
  double ntsc = std::round(number * 1.001);
  if (ntsc >= 2 && std::abs(ntsc / 1.001 - number) < 0.005 && std::fmod(ntsc, 6) == 0) {
    return reduced(static_cast<std::int64_t>(ntsc) * 1000, 1001);
  }
  return nearest_fraction(number, 1001);
}

std::string to_string(Rational rate) {
  return rate.den == 1 ? fmt::format("{}", rate.num) : fmt::format("{}/{}", rate.num, rate.den);
}

}  // namespace sluice
