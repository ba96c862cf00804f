#include "kernels/linear.h"

#include "kernels/packed_product.h"
#include "kernels/scratch.h"
#include "kernels/small_products.h"
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

// The bias as it is added: rounded to the dtype that is computed with, from any address.
at::Tensor rounded_bias(const at::Tensor& bias, at::ScalarType dtype) {
  if (!bias.defined()) return bias;
  at::Tensor row = at::empty({1, bias.numel()}, at::TensorOptions().dtype(dtype));
  widen_rows(Matrix(bias, {}, 1, bias.numel()), 0, 1, row);
  return row.squeeze(0);
}

// Without small products: oneDNN's large one, on tiles of widened rows.
void tiled_product(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, Epilogue epilogue,
                   at::Tensor& y) {
  const std::int64_t out = weight.rows, in = weight.columns;
  const bool in_place = weight.values.scalar_type() == x.scalar_type() && is_aligned(weight.values);
  const std::int64_t row_bytes = in * static_cast<std::int64_t>(x.element_size());
  const std::int64_t tile = in_place ? out : std::clamp<std::int64_t>(kTileBytes / row_bytes, 1, out);
  for (std::int64_t begin = 0; begin < out; begin += tile) {
    const std::int64_t end = std::min(begin + tile, out);
    at::Tensor rows;
    if (in_place) {
      rows = weight.values.view({out, in});
    } else {
      rows = scratch({end - begin, in}, x.scalar_type());
      widen_rows(weight, begin, end, rows);
    }
    std::optional<at::Tensor> b;
    if (bias.defined()) b = bias.slice(0, begin, end);
    y.slice(1, begin, end).copy_(onednn_linear(x, rows, b, epilogue));
  }
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, Epilogue epilogue) {
  const at::Tensor input = x.reshape({-1, weight.columns}).contiguous();  // [tokens, in]
  at::Tensor y = at::empty({input.size(0), weight.rows}, x.options());
  const at::Tensor b = rounded_bias(bias, x.scalar_type());
  if (y.numel() > 0) {
    if (has_small_products(x.scalar_type(), weight.columns)) {
      packed_product(input, weight, b.defined() ? b.to(at::kFloat) : b, epilogue, y);
    } else {
      tiled_product(input, weight, b, epilogue, y);
    }
  }
  auto shape = x.sizes().vec();
  shape.back() = weight.rows;
  return y.view(shape);
}

namespace reference {

at::Tensor linear(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, Epilogue epilogue) {
  std::optional<at::Tensor> b;
  if (bias.defined()) b = rounded_bias(bias, x.scalar_type());
  at::Tensor widened = at::empty({weight.rows, weight.columns}, x.options());
  reference::widen_rows(weight, 0, weight.rows, widened);
  at::Tensor y = at::linear(x, widened, b);
  return epilogue == Epilogue::gelu_tanh ? at::gelu(y, "tanh") : y;
}

}  // namespace reference
}  // namespace sluice::kernels
