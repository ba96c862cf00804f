#pragma once
// What follows a linear layer's product, over some rows of it while their sums are in a cache:
//   y = residual + gate · activation(factor · sums + bias), rounded once.

#include "kernels/lanes.h"
#include "kernels/row_vectors.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::kernels {

enum class Activation { none, gelu_tanh };

struct Epilogue {  // of a layer; what is undefined has no part in it
  float factor = 1;
  Activation activation = Activation::none;
  RowVectors gate;      // [batch or 1, tokens or 1, out] or by an index, in y's dtype
  at::Tensor residual;  // as y; may be y itself, which is then updated in place
};

template <typename T>
struct FinishedRows {  // a rectangle of y
  const float* sums = nullptr;
  std::int64_t sums_stride = 0;
  float factor = 1;
  const float* bias = nullptr;  // nullptr: none; of its first column on, as all that follows
  Activation activation = Activation::none;
  RowsOf<T> gate;
  const T* residual = nullptr;  // row 0 of it; nullptr: none
  std::int64_t residual_stride = 0;
  T* to = nullptr;  // row 0 of y
  std::int64_t stride = 0;
};

// Rows [begin, end) of y; row `begin` is the first of the sums.
void finish_rows(const FinishedRows<float>& of, std::int64_t begin, std::int64_t end, std::int64_t columns);
void finish_rows(const FinishedRows<Bf16>& of, std::int64_t begin, std::int64_t end, std::int64_t columns);

}  // namespace sluice::kernels
