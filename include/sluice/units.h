#pragma once
// Quantities that are easily mixed up: byte counts and exact rates.

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

using Bytes = std::uint64_t;

constexpr Bytes KiB(Bytes n) {
  return n << 10;
}
constexpr Bytes MiB(Bytes n) {
  return n << 20;
}
constexpr Bytes GiB(Bytes n) {
  return n << 30;
}

// "512 B", "12.3 MiB", "43.0 GiB": powers of 1024, one decimal.
std::string format_bytes(Bytes bytes);

// "512MiB", "10G", "1.5GiB", "300M", "4096": K, M, G, T are powers of 1024, with or without "iB" / "B".
// Throws Error(usage) that names the text.
Bytes parse_bytes(std::string_view text);

// An exact fraction, always in lowest terms with a positive denominator.
struct Rational {
  std::int64_t num = 0;
  std::int64_t den = 1;

  double value() const { return static_cast<double>(num) / static_cast<double>(den); }
  bool operator==(const Rational&) const = default;
};

// A frame rate as people write it: "24", "30000/1001", "23.976".  Decimals within 0.005 of 6k/1.001 become
// that exact NTSC rate (23.976 and 23.98 are 24000/1001), other decimals the nearest fraction with
// denominator <= 1001. Throws Error(usage) for what is no positive number or above 1000.
Rational parse_frame_rate(std::string_view text);

std::string to_string(Rational rate);  // "24" or "24000/1001"

}  // namespace sluice
