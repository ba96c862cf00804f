#include "kernels/linear.h"

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

void linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, const Epilogue& epilogue,
            Workspace& workspace, at::Tensor& y) {
  const WorkTimer timer(Work::linear);
  require_fitting(x, weight, epilogue, y);
  if (y.numel() == 0) return;
  const Workspace::Scope scope(workspace);
  packed_product(as_rows(x, workspace), weight, bias, epilogue, workspace, y);
}

at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias,
                  const Epilogue& epilogue) {
  auto shape = x.sizes().vec();
  shape.back() = weight.rows;
  at::Tensor y = at::empty(shape, x.options());
  Workspace workspace;
  linear(x, weight, bias, epilogue, workspace, y);
  return y;
}

namespace reference {

at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias,
                  const Epilogue& epilogue) {
  at::Tensor widened = at::empty({weight.rows, weight.columns}, x.options());
  reference::widen_rows(weight, 0, weight.rows, widened);
  at::Tensor y = at::matmul(x.to(at::kFloat), widened.to(at::kFloat).t());
  if (bias.defined()) {
    at::Tensor row = at::empty({1, weight.rows}, x.options());
    reference::widen_rows(Matrix(bias, {}, 1, weight.rows), 0, 1, row);
    y += row.squeeze(0).to(at::kFloat);
  }
  if (epilogue.activation == Activation::gelu_tanh) y = at::gelu(y, "tanh");
  if (epilogue.gate.defined()) y *= epilogue.gate.gathered(y.size(0), y.size(1)).to(at::kFloat);
  if (epilogue.residual.defined()) y += epilogue.residual.to(at::kFloat);
  return y.to(x.scalar_type());
}

}  // namespace reference
}  // namespace sluice::kernels
