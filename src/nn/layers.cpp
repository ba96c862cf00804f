#include "nn/layers.h"

#include "kernels/linear.h"
#include "kernels/norm.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sluice::nn {

void declare(const weights::ParameterScope& scope, Linear& layer, LinearShape shape) {
  layer.in = shape.in;
  layer.out = shape.rows.count == 0 ? shape.out : shape.rows.count;
  scope.add_matrix("weight", layer.weight, layer.scales, {shape.out, shape.in}, shape.rows);
  if (shape.bias == Bias::yes) scope.add("bias", layer.bias, {shape.out}, shape.rows);
}

kernels::Matrix matrix(const Linear& layer) {
  return {layer.weight, layer.scales, layer.out, layer.in};
}

at::Tensor linear(const Linear& layer, const at::Tensor& x) {
  return kernels::linear(x, matrix(layer), layer.bias);
}

at::Tensor linear_gelu_tanh(const Linear& layer, const at::Tensor& x) {
  return kernels::linear(x, matrix(layer), layer.bias, kernels::Epilogue::gelu_tanh);
}

at::Tensor rms_norm(const at::Tensor& x, double eps, const at::Tensor& weight) {
  std::optional<at::Tensor> w;
  if (weight.defined()) w = weight.to(x.scalar_type());
  return at::rms_norm(x, {x.size(-1)}, w, eps);
}

at::Tensor layer_norm(const at::Tensor& x, double eps) {
  return at::layer_norm(x, {x.size(-1)}, {}, {}, eps);
}

at::Tensor modulate(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift) {
  return at::addcmul(shift, x, scale + 1);
}

at::Tensor modulated_rms_norm(const at::Tensor& x, double eps, const at::Tensor& scale,
                              const at::Tensor& shift) {
  return kernels::rms_norm_modulated(x, eps, scale, shift);
}

void declare(const weights::ParameterScope& scope, FeedForward& layer, FeedForwardShape shape) {
  declare(scope / "net.0.proj", layer.up, {.in = shape.dim, .out = shape.inner, .bias = shape.bias});
  declare(scope / "net.2", layer.down, {.in = shape.inner, .out = shape.dim, .bias = shape.bias});
}

at::Tensor feed_forward(const FeedForward& layer, const at::Tensor& x) {
  // 1024 rows of the published width in f32: enough that packing the weights anew for each piece costs
  // nothing.
  constexpr std::int64_t kInnerBytes = 64 << 20;
  const std::int64_t row_bytes = layer.up.out * static_cast<std::int64_t>(x.element_size());
  const at::Tensor rows = x.flatten(0, -2);  // [tokens, dim]
  const std::int64_t count = rows.size(0), piece = std::max<std::int64_t>(kInnerBytes / row_bytes, 1);
  if (count <= piece) return linear(layer.down, linear_gelu_tanh(layer.up, x));
  at::Tensor y = at::empty({count, layer.down.out}, x.options());
  for (std::int64_t begin = 0; begin < count; begin += piece) {
    const at::Tensor part = rows.slice(0, begin, begin + piece);
    y.slice(0, begin, begin + piece).copy_(linear(layer.down, linear_gelu_tanh(layer.up, part)));
  }
  auto shape = x.sizes().vec();
  shape.back() = y.size(1);
  return y.view(shape);
}

}  // namespace sluice::nn
