#include "kernels/rows.h"

#include <ATen/ATen.h>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kSameSet = 4096, kApart = 256;  // bytes

}  // namespace

bool has_rows(const at::Tensor& x) {
  if (x.dim() == 0 || (x.size(-1) > 1 && x.stride(-1) != 1)) return false;
  std::int64_t axis = x.dim() - 2, distance = 0;  // of the rows inside of the axis; 0: there is one row
  for (; axis >= 0; --axis) {
    if (x.size(axis) == 1) continue;
    if (distance != 0 && x.stride(axis) != distance) return false;
    distance = x.stride(axis) * x.size(axis);
  }
  return true;
}

std::int64_t row_stride(const at::Tensor& x) {
  for (std::int64_t axis = x.dim() - 2; axis >= 0; --axis) {
    if (x.size(axis) != 1) return x.stride(axis);
  }
  return x.size(-1);
}

at::Tensor take_rows(Workspace& workspace, at::IntArrayRef sizes, at::ScalarType dtype) {
  const auto size = static_cast<std::int64_t>(c10::elementSize(dtype));
  const std::int64_t width = sizes.back();
  if (width * size % kSameSet != 0) return workspace.take(sizes, dtype);
  auto padded = sizes.vec();
  padded.back() += kApart / size;
  return workspace.take(padded, dtype).narrow(-1, 0, width);
}

}  // namespace sluice::kernels
