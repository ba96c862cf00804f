#include "kernels/widen.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kGrain = 1 << 15;  // values: some ten microseconds

Stored stored_format(const at::Tensor& values) {
  switch (values.scalar_type()) {
    case at::kFloat:
      return Stored::f32;
    case at::kBFloat16:
      return Stored::bf16;
    case at::kHalf:
      return Stored::f16;
    case at::kFloat8_e4m3fn:
      return Stored::fp8;
    case at::kByte:
      return Stored::nf4;
    default:
      throw Error(ErrorKind::internal,
                  fmt::format("a weight matrix in {}", at::toString(values.scalar_type())));
  }
}

const std::byte* bytes_of(const at::Tensor& x) {
  return x.defined() ? static_cast<const std::byte*>(x.const_data_ptr()) : nullptr;
}

// Calls widen(stored, first value, count, f32 or bf16 destination).
template <typename Widen>
void into(at::Tensor& to, const Matrix& matrix, std::int64_t begin, std::int64_t end, const Widen& widen) {
  const StoredValues from = stored_values(matrix);
  const std::int64_t first = begin * matrix.columns, count = (end - begin) * matrix.columns;
  if (to.scalar_type() == at::kFloat) {
    widen(from, first, count, to.mutable_data_ptr<float>());
  } else {
    widen(from, first, count, reinterpret_cast<Bf16*>(to.mutable_data_ptr<at::BFloat16>()));
  }
}

}  // namespace

StoredValues stored_values(const Matrix& matrix) {
  return {.format = stored_format(matrix.values),
          .values = bytes_of(matrix.values),
          .scales = bytes_of(matrix.scales)};
}

void widen_rows(const Matrix& matrix, std::int64_t begin, std::int64_t end, at::Tensor& to) {
  into(to, matrix, begin, end,
       [](const StoredValues& from, std::int64_t first, std::int64_t count, auto* out) {
         at::parallel_for(0, count, kGrain, [&](std::int64_t part, std::int64_t part_end) {
           widen_values(from, first + part, part_end - part, out + part);
         });
       });
}

namespace reference {

void widen_rows(const Matrix& matrix, std::int64_t begin, std::int64_t end, at::Tensor& to) {
  into(to, matrix, begin, end,
       [](const StoredValues& from, std::int64_t first, std::int64_t count, auto* out) {
         reference::widen_values(from, first, count, out);
       });
}

}  // namespace reference
}  // namespace sluice::kernels
