#pragma once
// A vector for each row of a tensor [batch, tokens, width]: gates, scales and shifts, which many rows share.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::kernels {

struct RowVectors {
  at::Tensor vectors;  // [batch or 1, tokens or 1, width]; with an index [distinct, width]
  at::Tensor index;  // int64 [batch · tokens], contiguous: which of the distinct ones; undefined: broadcast

  RowVectors() = default;
  RowVectors(const at::Tensor& broadcast);  // NOLINT(google-explicit-constructor): the plain case
  RowVectors(const at::Tensor& distinct, const at::Tensor& index);

  bool defined() const { return vectors.defined(); }
  // Those of tokens [begin, end) of one batch entry, of so many.
  RowVectors part(std::int64_t batch, std::int64_t tokens, std::int64_t begin, std::int64_t end) const;
  at::Tensor gathered(std::int64_t batch, std::int64_t tokens) const;  // [batch or 1, tokens or 1, width]
};

// The same as row functions take them.
template <typename T>
struct RowsOf {
  const T* data = nullptr;  // nullptr: none
  const std::int64_t* index = nullptr;
  std::int64_t tokens = 1;  // of a batch entry
  std::int64_t batch_stride = 0, token_stride = 0;

  [[gnu::always_inline]] const T* row(std::int64_t row) const {
    if (index) return data + index[row] * token_stride;
    return data + row / tokens * batch_stride + row % tokens * token_stride;
  }
};

// `tokens`: of a batch entry of the tensor with the rows.  Error(internal) where dtype, width or layout do
// not fit.  Looks into the tensors.
template <typename T>
RowsOf<T> rows_of(const RowVectors& vectors, at::ScalarType dtype, std::int64_t tokens, std::int64_t width);

}  // namespace sluice::kernels
