#include "nn/layers.h"

#include "kernels/linear.h"

#include <ATen/ATen.h>

namespace sluice::nn {

void declare(const weights::ParameterScope& scope, Linear& layer, LinearShape shape) {
  scope.add("weight", layer.weight, {shape.out, shape.in});
  if (shape.bias == Bias::yes) scope.add("bias", layer.bias, {shape.out});
}

at::Tensor linear(const Linear& layer, const at::Tensor& x) {
  return kernels::linear(x, layer.weight, layer.bias);
}

at::Tensor linear_gelu_tanh(const Linear& layer, const at::Tensor& x) {
  return kernels::linear(x, layer.weight, layer.bias, kernels::Epilogue::gelu_tanh);
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

void declare(const weights::ParameterScope& scope, FeedForward& layer, FeedForwardShape shape) {
  declare(scope / "net.0.proj", layer.up, {.in = shape.dim, .out = shape.inner, .bias = shape.bias});
  declare(scope / "net.2", layer.down, {.in = shape.inner, .out = shape.dim, .bias = shape.bias});
}

at::Tensor feed_forward(const FeedForward& layer, const at::Tensor& x) {
  return linear(layer.down, linear_gelu_tanh(layer.up, x));
}

}  // namespace sluice::nn
