#pragma once
// Layers for tests of linear products, and how close to the truth they must be.

#include "kernels/epilogue.h"
#include "kernels/linear.h"
#include "kernels/widen.h"
#include "support/cpu_path_scope.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace sluice::kernels {

struct Kind {
  const char* name;
  at::ScalarType dtype;  // of the weight; kByte: NF4
};
constexpr Kind kKinds[] = {{"f32", at::kFloat},
                           {"bf16", at::kBFloat16},
                           {"f16", at::kHalf},
                           {"fp8", at::kFloat8_e4m3fn},
                           {"nf4", at::kByte}};

inline Matrix random_matrix(at::ScalarType dtype, std::int64_t rows, std::int64_t columns) {
  const std::int64_t count = rows * columns;
  if (dtype == at::kByte)
    return {at::randint(0, 256, {(count + 1) / 2, 1}, at::kByte), at::rand({(count + 63) / 64}), rows,
            columns};
  const at::Tensor values = at::randn({rows, columns});
  if (dtype == at::kFloat8_e4m3fn) return {values.to(dtype), at::full({}, 0.37F), rows, columns};
  return {values.to(dtype)};
}

// The same tensor one byte after an aligned address.
inline at::Tensor unaligned(const at::Tensor& x, std::vector<char>& storage) {
  storage.assign(x.nbytes() + 1, 0);
  std::memcpy(storage.data() + 1, x.const_data_ptr(), x.nbytes());
  return at::from_blob(storage.data() + 1, x.sizes(), x.options());
}

// A lone result may be small by chance: parts of 1 count too.
inline double difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a.to(at::kDouble) - b).abs().max() / (b.abs().max() + 1)).item<double>();
}

// The values that a matrix has where `dtype` is computed with, in f64.
inline at::Tensor values_of(const Matrix& matrix, at::ScalarType dtype) {
  at::Tensor values = at::empty({matrix.rows, matrix.columns}, dtype);
  reference::widen_rows(matrix, 0, matrix.rows, values);
  return values.to(at::kDouble);
}

// In f64, of any matrix in f64.
inline at::Tensor exact(const at::Tensor& x, const at::Tensor& values, const at::Tensor& bias,
                        const Epilogue& epilogue = {}) {
  at::Tensor y = at::matmul(x.to(at::kDouble), values.t());
  if (bias.defined()) y = y + bias.to(x.scalar_type()).to(at::kDouble);
  if (epilogue.activation == Activation::gelu_tanh) y = at::gelu(y, "tanh");
  if (epilogue.gate.defined()) y = y * epilogue.gate.gathered(x.size(0), x.size(1)).to(at::kDouble);
  return epilogue.residual.defined() ? y + epilogue.residual.to(at::kDouble) : y;
}

// The same from what the weight's values are.
inline at::Tensor exact(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias,
                        const Epilogue& epilogue = {}) {
  return exact(x, values_of(weight, x.scalar_type()), bias, epilogue);
}

// Roundings of sums in order add up like a random walk.
inline double allowed(at::ScalarType dtype, std::int64_t in) {
  return dtype == at::kFloat ? 1e-6 + 6e-8 * std::sqrt(static_cast<double>(in)) : 0.008;
}

// On every path that this processor can run.
template <typename Claim>
void on_each_path(const Claim& claim) {
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    SCOPED_TRACE(std::string(name(path)));
    claim();
  }
}

}  // namespace sluice::kernels
