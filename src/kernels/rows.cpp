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

std::int64_t row_bytes(std::int64_t width, at::ScalarType dtype) {
  const std::int64_t bytes = width * static_cast<std::int64_t>(c10::elementSize(dtype));
  return bytes % kSameSet == 0 ? bytes + kApart : bytes;
}

at::Tensor take_rows(Workspace& workspace, at::IntArrayRef sizes, at::ScalarType dtype) {
  auto padded = sizes.vec();
  padded.back() = row_bytes(sizes.back(), dtype) / static_cast<std::int64_t>(c10::elementSize(dtype));
  return workspace.take(padded, dtype).narrow(-1, 0, sizes.back());
}

}  // namespace sluice::kernels
