#include "kernels/linear.h"

#include "kernels/low_rank.h"
#include "kernels/packed_product.h"
#include "kernels/rows.h"
#include "kernels/widen.h"
#include "kernels/work_timer.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sluice::kernels {
namespace {

void require_fitting(const at::Tensor& x, const Matrix& weight, const Epilogue& epilogue,
                     const at::Tensor& y) {
  const at::Tensor& residual = epilogue.residual;
  const bool sizes = weight.columns > 0 && x.size(-1) == weight.columns && y.size(-1) == weight.rows &&
                     y.numel() * weight.columns == x.numel() * weight.rows;
  const bool rows = y.scalar_type() == x.scalar_type() && has_rows(y);
  const bool added = !residual.defined() || (residual.sizes() == y.sizes() && has_rows(residual) &&
                                             residual.scalar_type() == y.scalar_type());
  if (sizes && rows && added) return;
  throw Error(ErrorKind::internal,
              fmt::format("a linear layer [{}, {}] between [{}] and [{}]", weight.rows, weight.columns,
                          fmt::join(x.sizes(), ", "), fmt::join(y.sizes(), ", ")));
}

void require_fitting(const LowRank& adapter, const Matrix& weight) {
  const at::Tensor &down = adapter.down, &up = adapter.up;
  if (down.dim() == 2 && up.dim() == 2 && down.size(0) > 0 && down.size(0) == up.size(1) &&
      down.size(1) == weight.columns && up.size(0) == weight.rows)
    return;
  throw Error(ErrorKind::internal,
              fmt::format("an adapter [{}] · [{}] of a linear layer [{}, {}]", fmt::join(up.sizes(), ", "),
                          fmt::join(down.sizes(), ", "), weight.rows, weight.columns));
}

// x, or where its rows are not such or no whole words of 4 bytes, a copy in the workspace, filled up with a
// zero.
at::Tensor as_rows(const at::Tensor& x, Workspace& workspace) {
  const std::int64_t in = x.size(-1), padding = x.scalar_type() == at::kBFloat16 ? in % 2 : 0;
  if (padding == 0 && has_rows(x)) return x;
  auto sizes = x.sizes().vec();
  sizes.back() += padding;
  at::Tensor copy = workspace.take(sizes, x.scalar_type());
  copy.narrow(-1, in, padding).zero_();
  copy.narrow(-1, 0, in).copy_(x);
  return copy;
}

}  // namespace

void linear(const at::Tensor& x, const LinearWeights& weights, const Epilogue& epilogue, Workspace& workspace,
            at::Tensor& y) {
  const WorkTimer timer(Work::linear);
  require_fitting(x, weights.matrix, epilogue, y);
  for (const LowRank& adapter : weights.adapters) require_fitting(adapter, weights.matrix);
  if (y.numel() == 0) return;
  const Workspace::Scope scope(workspace);
  const at::Tensor rows = as_rows(x, workspace);
  std::vector<Factors> factors = low_rank_factors(rows, weights.adapters, workspace);
  factors.insert(factors.begin(), {rows, weights.matrix});
  packed_product(factors, weights.bias, epilogue, workspace, y);
}

at::Tensor linear(const at::Tensor& x, const LinearWeights& weights, const Epilogue& epilogue) {
  auto shape = x.sizes().vec();
  shape.back() = weights.matrix.rows;
  at::Tensor y = at::empty(shape, x.options());
  Workspace workspace;
  linear(x, weights, epilogue, workspace, y);
  return y;
}

void linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, const Epilogue& epilogue,
            Workspace& workspace, at::Tensor& y) {
  linear(x, {weight, bias}, epilogue, workspace, y);
}

at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias,
                  const Epilogue& epilogue) {
  return linear(x, {weight, bias}, epilogue);
}

namespace reference {
namespace {

at::Tensor widened(const Matrix& matrix, at::ScalarType dtype) {  // its values as of `dtype`, in f32
  at::Tensor values = at::empty({matrix.rows, matrix.columns}, dtype);
  reference::widen_rows(matrix, 0, matrix.rows, values);
  return values.to(at::kFloat);
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const LinearWeights& weights, const Epilogue& epilogue) {
  const at::ScalarType dtype = x.scalar_type();
  const at::Tensor inputs = x.to(at::kFloat);
  at::Tensor y = at::matmul(inputs, widened(weights.matrix, dtype).t());
  for (const LowRank& adapter : weights.adapters) {
    const at::Tensor inner = at::matmul(inputs, widened(adapter.down, dtype).t()) * adapter.factor;
    y += at::matmul(inner.to(dtype).to(at::kFloat), widened(adapter.up, dtype).t());
  }
  y *= epilogue.factor;
  if (weights.bias.defined())
    y += widened(Matrix(weights.bias, {}, 1, weights.matrix.rows), dtype).squeeze(0);
  if (epilogue.activation == Activation::gelu_tanh) y = at::gelu(y, "tanh");
  if (epilogue.gate.defined()) y *= epilogue.gate.gathered(y.size(0), y.size(1)).to(at::kFloat);
  if (epilogue.residual.defined()) y += epilogue.residual.to(at::kFloat);
  return y.to(dtype);
}

at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias,
                  const Epilogue& epilogue) {
  return reference::linear(x, {weight, bias}, epilogue);
}

}  // namespace reference
}  // namespace sluice::kernels
