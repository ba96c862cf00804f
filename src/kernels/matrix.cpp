#include "kernels/matrix.h"

#include "base/nf4.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <utility>

namespace sluice::kernels {
namespace {

constexpr auto kBlock = static_cast<std::int64_t>(kNf4BlockValues);

std::int64_t values_needed(const Matrix& matrix) {
  const std::int64_t count = matrix.rows * matrix.columns;
  return matrix.format() == MatrixFormat::nf4 ? (count + 1) / 2 : count;
}

std::int64_t scales_needed(const Matrix& matrix) {
  switch (matrix.format()) {
    case MatrixFormat::dense:
      return 0;
    case MatrixFormat::fp8:
      return matrix.scales.defined() ? 1 : 0;
    case MatrixFormat::nf4:
      return (matrix.rows * matrix.columns + kBlock - 1) / kBlock;
  }
  return 0;
}

// Tables were checked before the first byte was read: what does not fit here is a mistake of this program.
void require_fitting(const Matrix& matrix) {
  const std::int64_t scales = matrix.scales.defined() ? matrix.scales.numel() : 0;
  if (matrix.values.numel() == values_needed(matrix) && scales == scales_needed(matrix)) return;
  throw Error(ErrorKind::internal, fmt::format("a matrix [{}, {}] has {} values of {} and {} scales of {}",
                                               matrix.rows, matrix.columns, matrix.values.numel(),
                                               values_needed(matrix), scales, scales_needed(matrix)));
}

}  // namespace

Matrix::Matrix(const at::Tensor& dense) : Matrix(dense, {}, dense.size(0), dense.size(1)) {}

Matrix::Matrix(at::Tensor values, at::Tensor scales, std::int64_t rows, std::int64_t columns)
    : values(std::move(values)), scales(std::move(scales)), rows(rows), columns(columns) {
  require_fitting(*this);
}

MatrixFormat Matrix::format() const {
  switch (values.scalar_type()) {
    case at::kFloat8_e4m3fn:
      return MatrixFormat::fp8;
    case at::kByte:
      return MatrixFormat::nf4;
    default:
      return MatrixFormat::dense;
  }
}

bool is_aligned(const at::Tensor& x) {
  return reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % x.element_size() == 0;
}

}  // namespace sluice::kernels
