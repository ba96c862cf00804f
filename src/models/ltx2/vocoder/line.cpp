#include "models/ltx2/vocoder/line.h"

#include "kernels/widen.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

kernels::StoredValues values_of(const at::Tensor& weight) {
  return kernels::stored_values(kernels::Matrix(weight.view({weight.size(0), -1})));
}

}  // namespace

kernels::LineConv same_line(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t dilation) {
  return {.weights = {.values = {}, .out = out, .in = in, .taps = kernel},
          .dilation = dilation,
          .padding = (kernel - 1) * dilation / 2};
}

kernels::LineConv raising_line(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t factor) {
  return {.weights = {.values = {}, .out = out, .in = in, .taps = kernel, .transposed = true},
          .stride = factor,
          .padding = (kernel - factor) / 2};
}

std::int64_t rows_around(const kernels::LineConv& conv) {
  const kernels::LineReach reach = kernels::line_reach(conv);
  return std::max(reach.before, reach.behind);
}

Line Line::same(const nn::Conv& layer, std::int64_t dilation) {
  const at::Tensor& w = layer.weight;
  return {layer, same_line(w.size(1), w.size(0), w.size(2), dilation)};
}

Line Line::raising(const nn::Conv& layer, std::int64_t factor) {
  const at::Tensor& w = layer.weight;
  return {layer, raising_line(w.size(0), w.size(1), w.size(2), factor)};
}

Line::Line(const nn::Conv& layer, kernels::LineConv conv)
    : weight_(layer.weight.contiguous()), conv_(std::move(conv)) {
  conv_.weights.values = values_of(weight_);
  if (!layer.bias.defined()) return;
  bias_ = layer.bias.to(at::kFloat).contiguous();
  conv_.bias = bias_.const_data_ptr<float>();
}

at::Tensor multiply_rows(const at::Tensor& weight, const float* x, std::int64_t rows, std::int64_t stride) {
  const at::Tensor values = weight.contiguous();
  kernels::LineConv conv = same_line(weight.size(1), weight.size(0), 1);
  conv.weights.values = values_of(values);
  at::Tensor y = at::empty({rows, weight.size(0)}, at::kFloat);
  kernels::conv_line(conv, {.rows = rows, .x = x, .stride = stride}, {.y = y.data_ptr<float>()});
  return y;
}

}  // namespace sluice::ltx2
