#include "bytes/plan/float_formats.h"
#include "bytes/plan/part_copy.h"

#include "base/text.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sluice::bytes {
namespace {

constexpr std::size_t kBlockElements = 1024;
constexpr double kLargest = 448;  // of F8_E4M3

// Calls visit(first element, values) block by block; F64 holds every value of the other formats.
template <typename Visit>
void each_block(Dtype dtype, std::span<const std::byte> from, Visit visit) {
  std::array<double, kBlockElements> block;
  const std::size_t size = dtype_bits(dtype) / 8, all = from.size() / size;
  for (std::size_t done = 0, count; done < all; done += count) {
    count = std::min(all - done, kBlockElements);
    const auto values = std::span(block).first(count);
    cast_elements(dtype, from.subspan(done * size, count * size), Dtype::F64, std::as_writable_bytes(values));
    visit(done, std::span<const double>(values));
  }
}

double largest_magnitude(Dtype dtype, std::span<const std::byte> from, std::string_view name) {
  double largest = 0;
  each_block(dtype, from, [&](std::size_t first, std::span<const double> values) {
    bool finite = true;
    for (double value : values) {
      finite &= std::abs(value) <= std::numeric_limits<double>::max();  // false for NaN too
      largest = std::max(largest, std::abs(value));
    }
    if (finite) return;
    const auto bad = std::ranges::find_if(values, [](double value) { return !std::isfinite(value); });
    throw Error(ErrorKind::non_finite,
                fmt::format("tensor {} has {} at element {} and cannot be quantized", in_quotes(name),
                            std::isnan(*bad) ? "NaN" : "infinity",
                            first + static_cast<std::size_t>(bad - values.begin())),
                "leave it out of what is quantized, or look at where the file comes from");
  });
  return largest;
}

float scale_for(double largest, std::string_view name) {
  if (largest / kLargest > std::numeric_limits<float>::max()) {
    throw Error(
        ErrorKind::non_finite,
        fmt::format("tensor {} has values up to {:g}, whose scale is beyond F32", in_quotes(name), largest),
        "leave it out of what is quantized");
  }
  return f8_e4m3_scale(largest);
}

// In F32, as the reference divides: the quotient is rounded before it is rounded to F8.
float divided(double value, float scale) {
  if (std::abs(value) <= std::numeric_limits<float>::max()) return static_cast<float>(value) / scale;
  return f32_for_rounding(value / scale);
}

}  // namespace

float f8_e4m3_scale(double largest) {
  if (largest == 0) return 1;
  return std::max(static_cast<float>(largest / kLargest), std::numeric_limits<float>::min());
}

float quantize_to_f8_e4m3(Dtype from_dtype, std::span<const std::byte> from, std::span<std::byte> to,
                          std::string_view name) {
  const float scale = scale_for(largest_magnitude(from_dtype, from, name), name);
  each_block(from_dtype, from, [&](std::size_t first, std::span<const double> values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      to[first + i] = static_cast<std::byte>(F8E4M3Format::from_f32(divided(values[i], scale)));
  });
  return scale;
}

}  // namespace sluice::bytes
