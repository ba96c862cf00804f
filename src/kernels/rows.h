#pragma once
// Tensors [..., width] as rows at one distance, which is all that the kernels of a linear layer ask for.

#include "kernels/workspace.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::kernels {

// Whether all rows are contiguous and equally far apart.
bool has_rows(const at::Tensor& x);
std::int64_t row_stride(const at::Tensor& x);  // of what has_rows(); in values

// Takes a tensor with rows as products read them best.  Where they lie a multiple of 4 KiB apart, as at the
// widths of the published models, the rows of a register tile share one set of the first-level cache: such
// rows get a distance of 256 bytes more, 5 % of a product's time.
at::Tensor take_rows(Workspace& workspace, at::IntArrayRef sizes, at::ScalarType dtype);
std::int64_t row_bytes(std::int64_t width, at::ScalarType dtype);  // of such a row

}  // namespace sluice::kernels
