#pragma once
// A weight matrix as a checkpoint holds it: values, and scales beside them where it is quantized.  Layouts
// and formulas: docs/quantized-weights.md.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::kernels {

enum class MatrixFormat {
  dense,  // values [rows, columns] in bf16, f16 or f32
  fp8,    // values [rows, columns] in Float8_e4m3fn; scales: f32, one element, or undefined for 1
  nf4,    // values: bytes [ceil(rows * columns / 2)], the first value of a pair in the high half;
          // scales: f32 [ceil(rows * columns / 64)], the absmax of 64 consecutive values
};

struct Matrix {
  at::Tensor values;
  at::Tensor scales;
  std::int64_t rows = 0;     // out
  std::int64_t columns = 0;  // in

  Matrix() = default;
  Matrix(const at::Tensor& dense);  // NOLINT(google-explicit-constructor): every dense tensor is a matrix
  // Error(internal) where the sizes do not fit each other.
  Matrix(at::Tensor values, at::Tensor scales, std::int64_t rows, std::int64_t columns);

  MatrixFormat format() const;  // from the dtype of `values`
};

// Whether the tensor's address suits its dtype: a file promises nothing, and products are given only what
// does.
bool is_aligned(const at::Tensor& x);

}  // namespace sluice::kernels
