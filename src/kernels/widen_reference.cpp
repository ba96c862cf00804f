#include "base/nf4.h"
#include "kernels/widen_values.h"

#include <ATen/ATen.h>

#include <cstring>

namespace sluice::kernels::reference {
namespace {

// The value at `index` of an array at any address.
template <typename T>
T at_index(const std::byte* data, std::int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

float nf4_value(const StoredValues& from, std::int64_t index) {
  const auto pair = std::to_integer<std::size_t>(from.values[index / 2]);
  const float absmax = at_index<float>(from.scales, index / static_cast<std::int64_t>(kNf4BlockValues));
  return kNf4Values[index % 2 == 0 ? pair >> 4 : pair & 15] * absmax;
}

float value_at(const StoredValues& from, std::int64_t index) {
  switch (from.format) {
    case Stored::f32:
      return at_index<float>(from.values, index);
    case Stored::bf16:
      return static_cast<float>(at_index<at::BFloat16>(from.values, index));
    case Stored::f16:
      return static_cast<float>(at_index<at::Half>(from.values, index));
    case Stored::fp8: {
      const float code = static_cast<float>(at_index<at::Float8_e4m3fn>(from.values, index));
      return from.scales ? code * at_index<float>(from.scales, 0) : code;
    }
    case Stored::nf4:
      return nf4_value(from, index);
  }
  return 0;
}

}  // namespace

void widen_values(const StoredValues& from, std::int64_t first, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = value_at(from, first + i);
}

void widen_values(const StoredValues& from, std::int64_t first, std::int64_t count, Bf16* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i].bits = at::BFloat16(value_at(from, first + i)).x;
}

}  // namespace sluice::kernels::reference
