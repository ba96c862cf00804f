#include <sluice/checkpoint.h>

#include "bytes/format/dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace sluice {
namespace {

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  unsigned bits;
};

// In the order of the enum.
constexpr std::array<DtypeRow, 22> kDtypes = {{
    {Dtype::BOOL, "BOOL", 8},
    {Dtype::F4, "F4", 4},
    {Dtype::F6_E2M3, "F6_E2M3", 6},
    {Dtype::F6_E3M2, "F6_E3M2", 6},
    {Dtype::U8, "U8", 8},
    {Dtype::I8, "I8", 8},
    {Dtype::F8_E5M2, "F8_E5M2", 8},
    {Dtype::F8_E4M3, "F8_E4M3", 8},
    {Dtype::F8_E8M0, "F8_E8M0", 8},
    {Dtype::F8_E4M3FNUZ, "F8_E4M3FNUZ", 8},
    {Dtype::F8_E5M2FNUZ, "F8_E5M2FNUZ", 8},
    {Dtype::I16, "I16", 16},
    {Dtype::U16, "U16", 16},
    {Dtype::F16, "F16", 16},
    {Dtype::BF16, "BF16", 16},
    {Dtype::I32, "I32", 32},
    {Dtype::U32, "U32", 32},
    {Dtype::F32, "F32", 32},
    {Dtype::C64, "C64", 64},
    {Dtype::F64, "F64", 64},
    {Dtype::I64, "I64", 64},
    {Dtype::U64, "U64", 64},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kDtypes.size(); ++i) {
    if (static_cast<std::size_t>(kDtypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

std::string_view dtype_name(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)].name;
}

unsigned dtype_bits(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)].bits;
}

std::int64_t TensorInfo::elements() const {
  std::int64_t product = 1;
  for (std::int64_t extent : shape) product *= extent;
  return product;
}

std::string format_shape(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

namespace bytes {

std::optional<Dtype> find_dtype(std::string_view name) {
  auto row = std::ranges::find(kDtypes, name, &DtypeRow::name);
  if (row == kDtypes.end()) return std::nullopt;
  return row->dtype;
}

std::optional<Bytes> checked_size(Dtype dtype, std::span<const std::int64_t> shape) {
  constexpr auto kMost = static_cast<Bytes>(std::numeric_limits<std::int64_t>::max());
  Bytes bits = dtype_bits(dtype);
  Bytes elements = 1;
  for (std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (__builtin_mul_overflow(elements, static_cast<Bytes>(extent), &elements) || elements > kMost)
      return std::nullopt;
  }
  if (__builtin_mul_overflow(elements, bits, &bits) || bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

}  // namespace bytes
}  // namespace sluice
