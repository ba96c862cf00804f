#pragma once
// Rows of a weight matrix in the dtype that is computed with.  Every value is what f32 arithmetic gives
// (code · scale, table[code] · absmax, or the value itself), rounded once.

#include "kernels/matrix.h"
#include "kernels/widen_values.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::kernels {

// Rows [begin, end) of `matrix` into `to`: contiguous [end - begin, columns] in f32 or bf16.  The matrix may
// lie at any address.  Runs on LibTorch's threads.
void widen_rows(const Matrix& matrix, std::int64_t begin, std::int64_t end, at::Tensor& to);

StoredValues stored_values(const Matrix& matrix);  // looks into its tensors

namespace reference {
// The plain twin: value by value.
void widen_rows(const Matrix& matrix, std::int64_t begin, std::int64_t end, at::Tensor& to);
}  // namespace reference

}  // namespace sluice::kernels
