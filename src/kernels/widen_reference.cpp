#include "kernels/nf4_table.h"
#include "kernels/widen.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

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

const std::byte* bytes_of(const at::Tensor& x) {
  return x.defined() ? static_cast<const std::byte*>(x.const_data_ptr()) : nullptr;
}

float value_at(const Matrix& matrix, std::int64_t index) {
  const std::byte* values = bytes_of(matrix.values);
  const std::byte* scales = bytes_of(matrix.scales);
  switch (matrix.values.scalar_type()) {
    case at::kFloat:
      return at_index<float>(values, index);
    case at::kBFloat16:
      return static_cast<float>(at_index<at::BFloat16>(values, index));
    case at::kHalf:
      return static_cast<float>(at_index<at::Half>(values, index));
    case at::kFloat8_e4m3fn: {
      const float code = static_cast<float>(at_index<at::Float8_e4m3fn>(values, index));
      return scales ? code * at_index<float>(scales, 0) : code;
    }
    case at::kByte: {
      const auto pair = std::to_integer<unsigned>(values[index / 2]);
      const unsigned code = index % 2 == 0 ? pair >> 4 : pair & 15;
      return kNf4Table[code] * at_index<float>(scales, index / kNf4Block);
    }
    default:
      throw Error(ErrorKind::internal,
                  fmt::format("a weight matrix in {}", at::toString(matrix.values.scalar_type())));
  }
}

}  // namespace

void widen_rows(const Matrix& matrix, std::int64_t begin, std::int64_t end, at::Tensor& to) {
  const std::int64_t first = begin * matrix.columns, count = (end - begin) * matrix.columns;
  if (to.scalar_type() == at::kFloat) {
    float* out = to.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < count; ++i) out[i] = value_at(matrix, first + i);
  } else {
    at::BFloat16* out = to.mutable_data_ptr<at::BFloat16>();
    for (std::int64_t i = 0; i < count; ++i) out[i] = at::BFloat16(value_at(matrix, first + i));
  }
}

}  // namespace sluice::kernels::reference
