#include "weights/quantize/encode.h"

#include "bytes/plan/float_formats.h"
#include "bytes/plan/part_copy.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice::weights {
namespace {

std::vector<float> as_f32(Dtype dtype, std::span<const std::byte> values) {
  std::vector<float> wide(values.size() / (dtype_bits(dtype) / 8));
  bytes::cast_elements(dtype, values, Dtype::F32, std::as_writable_bytes(std::span(wide)));
  return wide;
}

// std::max would pass over NaN.
float larger(float one, float other) {
  return std::isnan(one) || one > other ? one : other;
}

std::uint8_t nf4_code(float value) {
  return static_cast<std::uint8_t>(
      std::ranges::count_if(kNf4Thresholds, [value](float threshold) { return value > threshold; }));
}

}  // namespace

bool can_quantize(Dtype dtype) {
  return dtype == Dtype::BF16 || dtype == Dtype::F16 || dtype == Dtype::F32 || dtype == Dtype::F64;
}

float f8_e4m3_scale(float largest) {
  return bytes::f8_e4m3_scale(largest);
}

std::optional<NonFiniteValue> first_non_finite(Dtype dtype, std::span<const std::byte> values) {
  const std::vector<float> wide = as_f32(dtype, values);
  const auto found = std::ranges::find_if(wide, [](float value) { return !std::isfinite(value); });
  if (found == wide.end()) return std::nullopt;
  return NonFiniteValue{static_cast<std::size_t>(found - wide.begin()), std::isnan(*found)};
}

namespace reference {

float largest_magnitude(Dtype dtype, std::span<const std::byte> values) {
  float largest = 0;
  for (float value : as_f32(dtype, values)) largest = larger(std::abs(value), largest);
  return largest;
}

void encode_f8_e4m3(Dtype dtype, std::span<const std::byte> values, float scale, std::span<std::byte> codes) {
  const std::vector<float> wide = as_f32(dtype, values);
  for (std::size_t i = 0; i < wide.size(); ++i)
    codes[i] = static_cast<std::byte>(bytes::F8E4M3Format::from_f32(wide[i] / scale));
}

void encode_nf4(Dtype dtype, std::span<const std::byte> values, std::span<float> absmax,
                std::span<std::byte> codes) {
  const std::vector<float> wide = as_f32(dtype, values);
  for (std::size_t begin = 0; begin < wide.size(); begin += kNf4BlockValues) {
    const auto block = std::span(wide).subspan(begin, std::min(kNf4BlockValues, wide.size() - begin));
    float largest = 0;
    for (float value : block) largest = larger(std::abs(value), largest);
    absmax[begin / kNf4BlockValues] = largest;
    const float divisor = largest > 0 ? largest : 1;
    for (std::size_t i = 0; i < block.size(); i += 2) {
      const int first = nf4_code(block[i] / divisor);
      const int second = nf4_code(i + 1 < block.size() ? block[i + 1] / divisor : 0);
      codes[(begin + i) / 2] = static_cast<std::byte>(first << 4 | second);
    }
  }
}

}  // namespace reference
}  // namespace sluice::weights
