#include "kernels/widen.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

namespace sluice::kernels {

void widen_rows(const Matrix& matrix, std::int64_t begin, std::int64_t end, at::Tensor& to) {
  if (matrix.format() == MatrixFormat::dense && is_aligned(matrix.values)) {
    to.copy_(matrix.values.view({matrix.rows, matrix.columns}).slice(0, begin, end));
    return;
  }
  at::parallel_for(begin, end, 1, [&](std::int64_t first, std::int64_t last) {
    at::Tensor part = to.slice(0, first - begin, last - begin);
    reference::widen_rows(matrix, first, last, part);
  });
}

}  // namespace sluice::kernels
