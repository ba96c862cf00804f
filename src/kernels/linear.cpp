#include "kernels/linear.h"

#include "kernels/scratch.h"
#include "kernels/widen.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

namespace sluice::kernels {
namespace {

// Widened tiles are at most this large: a 4096 x 4096 f32 weight in one tile needs no gathering of its
// output.
constexpr std::int64_t kTileBytes = 64 << 20;

using PointwiseLinear = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                   c10::string_view, c10::List<std::optional<at::Scalar>>,
                                   std::optional<c10::string_view>);

// oneDNN's product with a fused epilogue; LibTorch registers it for its compiler and offers no C++ function.
at::Tensor onednn_linear(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                         Epilogue epilogue) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
                             .typed<PointwiseLinear>();
  const c10::List<std::optional<at::Scalar>> no_scalars;
  if (epilogue == Epilogue::gelu_tanh) return op.call(x, weight, bias, "gelu", no_scalars, "tanh");
  return op.call(x, weight, bias, "none", no_scalars, "");
}

std::optional<at::Tensor> bias_rows(const at::Tensor& bias, std::int64_t begin, std::int64_t end) {
  if (!bias.defined()) return std::nullopt;
  return bias.slice(0, begin, end);
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, Epilogue epilogue) {
  const at::Tensor b = bias.defined() ? bias.to(x.scalar_type()) : bias;
  const std::int64_t out = weight.rows, in = weight.columns;
  if (x.numel() == 0) {
    auto shape = x.sizes().vec();
    shape.back() = out;
    return at::empty(shape, x.options());
  }
  const at::Tensor input = x.contiguous();
  if (weight.values.scalar_type() == x.scalar_type() && is_aligned(weight.values))
    return onednn_linear(input, weight.values.view({out, in}), bias_rows(b, 0, out), epilogue);

  const std::int64_t row_bytes = in * static_cast<std::int64_t>(x.element_size());
  const std::int64_t tile = std::clamp<std::int64_t>(kTileBytes / row_bytes, 1, out);
  auto product = [&](std::int64_t begin, std::int64_t end) {
    at::Tensor widened = scratch({end - begin, in}, x.scalar_type());
    widen_rows(weight, begin, end, widened);
    return onednn_linear(input, widened, bias_rows(b, begin, end), epilogue);
  };
  if (tile == out) return product(0, out);

  auto shape = x.sizes().vec();
  shape.back() = out;
  at::Tensor y = at::empty(shape, x.options());
  for (std::int64_t begin = 0; begin < out; begin += tile) {
    std::int64_t end = std::min(begin + tile, out);
    y.slice(-1, begin, end).copy_(product(begin, end));
  }
  return y;
}

namespace reference {

at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, Epilogue epilogue) {
  std::optional<at::Tensor> b;
  if (bias.defined()) b = bias.to(x.scalar_type());
  at::Tensor widened = at::empty({weight.rows, weight.columns}, x.options());
  reference::widen_rows(weight, 0, weight.rows, widened);
  at::Tensor y = at::linear(x, widened, b);
  return epilogue == Epilogue::gelu_tanh ? at::gelu(y, "tanh") : y;
}

}  // namespace reference
}  // namespace sluice::kernels
