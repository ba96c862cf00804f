#include "weights/dtype.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::weights {
namespace {

constexpr std::pair<Dtype, at::ScalarType> kTypes[] = {
    {Dtype::BOOL, at::kBool},
    {Dtype::U8, at::kByte},
    {Dtype::I8, at::kChar},
    {Dtype::I16, at::kShort},
    {Dtype::I32, at::kInt},
    {Dtype::I64, at::kLong},
    {Dtype::F16, at::kHalf},
    {Dtype::BF16, at::kBFloat16},
    {Dtype::F32, at::kFloat},
    {Dtype::F64, at::kDouble},
    {Dtype::F8_E4M3, at::kFloat8_e4m3fn},
    {Dtype::F8_E5M2, at::kFloat8_e5m2},
    {Dtype::U16, at::kUInt16},
    {Dtype::U32, at::kUInt32},
    {Dtype::U64, at::kUInt64},
    {Dtype::C64, at::kComplexFloat},
    {Dtype::F8_E4M3FNUZ, at::kFloat8_e4m3fnuz},
    {Dtype::F8_E5M2FNUZ, at::kFloat8_e5m2fnuz},
    {Dtype::F8_E8M0, at::kFloat8_e8m0fnu},
};

}  // namespace

bool can_compute_with(Dtype dtype) {
  return dtype == Dtype::BF16 || dtype == Dtype::F16 || dtype == Dtype::F32;
}

bool has_file_dtype(at::ScalarType type) {
  return std::ranges::any_of(kTypes, [&](const auto& pair) { return pair.second == type; });
}

at::ScalarType to_scalar_type(Dtype dtype) {
  for (auto [file, torch] : kTypes) {
    if (file == dtype) return torch;
  }
  throw Error(ErrorKind::bad_input, fmt::format("tensors of dtype {} cannot be read", dtype_name(dtype)),
              "convert the file to BF16 or F32");
}

Dtype from_scalar_type(at::ScalarType type) {
  for (auto [file, torch] : kTypes) {
    if (torch == type) return file;
  }
  throw Error(ErrorKind::internal, fmt::format("no safetensors dtype for LibTorch's {}", at::toString(type)));
}

}  // namespace sluice::weights
