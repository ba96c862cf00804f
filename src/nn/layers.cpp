#include "nn/layers.h"

#include "kernels/linear.h"
#include "kernels/norm.h"
#include "kernels/rows.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sluice::nn {

void declare(const weights::ParameterScope& scope, Linear& layer, LinearShape shape) {
  layer.in = shape.in;
  layer.out = shape.rows.count == 0 ? shape.out : shape.rows.count;
  scope.add_matrix("weight", layer.weight, layer.scales, {shape.out, shape.in}, shape.rows, &layer.adapters);
  if (shape.bias == Bias::yes) scope.add("bias", layer.bias, {shape.out}, shape.rows);
}

namespace {

kernels::LinearWeights weights_of(const Linear& layer) {
  return {matrix(layer), layer.bias, layer.adapters};
}

}  // namespace

kernels::Matrix matrix(const Linear& layer) {
  return {layer.weight, layer.scales, layer.out, layer.in};
}

void linear(const Linear& layer, const at::Tensor& x, const kernels::Epilogue& epilogue,
            kernels::Workspace& workspace, at::Tensor& y) {
  kernels::linear(x, weights_of(layer), epilogue, workspace, y);
}

at::Tensor linear(const Linear& layer, const at::Tensor& x) {
  return kernels::linear(x, weights_of(layer));
}

at::Tensor linear_gelu_tanh(const Linear& layer, const at::Tensor& x) {
  return kernels::linear(x, weights_of(layer), {.activation = kernels::Activation::gelu_tanh});
}

at::Tensor modulated_rms_norm(const at::Tensor& x, double eps, const at::Tensor& scale,
                              const at::Tensor& shift) {
  return kernels::rms_norm_modulated(x, eps, scale, shift);
}

void declare(const weights::ParameterScope& scope, FeedForward& layer, FeedForwardShape shape) {
  declare(scope / "net.0.proj", layer.up, {.in = shape.dim, .out = shape.inner, .bias = shape.bias});
  declare(scope / "net.2", layer.down, {.in = shape.inner, .out = shape.dim, .bias = shape.bias});
}

void feed_forward(const FeedForward& layer, const at::Tensor& x, const kernels::Epilogue& epilogue,
                  kernels::Workspace& workspace, at::Tensor& y) {
  // 1024 rows of the published width in f32: enough that packing the weights anew for each piece costs
  // nothing.
  const std::int64_t row_bytes = layer.up.out * static_cast<std::int64_t>(x.element_size());
  const std::int64_t tokens = x.size(1);
  const std::int64_t piece =
      std::clamp<std::int64_t>(kInnerBytes / row_bytes, 1, std::max<std::int64_t>(tokens, 1));
  const kernels::Workspace::Scope scope(workspace);
  const at::Tensor memory = kernels::take_rows(workspace, {1, piece, layer.up.out}, x.scalar_type());
  for (std::int64_t batch = 0; batch < x.size(0); ++batch) {
    for (std::int64_t begin = 0; begin < tokens; begin += piece) {
      const std::int64_t end = std::min(begin + piece, tokens);
      auto part = [&](const at::Tensor& of) {
        return of.defined() ? of.narrow(0, batch, 1).slice(1, begin, end) : of;
      };
      at::Tensor inner = memory.slice(1, 0, end - begin), out = part(y);
      linear(layer.up, part(x), {.activation = kernels::Activation::gelu_tanh}, workspace, inner);
      linear(layer.down, inner,
             {.activation = epilogue.activation,
              .gate = epilogue.gate.part(batch, tokens, begin, end),
              .residual = part(epilogue.residual)},
             workspace, out);
    }
  }
}

}  // namespace sluice::nn
