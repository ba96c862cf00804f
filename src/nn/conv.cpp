#include "nn/conv.h"

#include "kernels/scratch.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sluice::nn {
namespace {

std::vector<std::int64_t> weight_shape(std::int64_t first, std::int64_t second,
                                       const std::vector<std::int64_t>& kernel) {
  std::vector<std::int64_t> shape = {first, second};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return shape;
}

bool channels_last(const at::Tensor& x) {
  at::MemoryFormat format = x.suggest_memory_format();
  return format == at::MemoryFormat::ChannelsLast || format == at::MemoryFormat::ChannelsLast3d;
}

// The weight in x's dtype.  A widened copy has the channel order that the convolution of x wants, so that it
// is not copied a second time.
at::Tensor operand(const at::Tensor& weight, const at::Tensor& x) {
  if (weight.scalar_type() == x.scalar_type()) return weight;
  at::Tensor order = channels_last(x) ? weight.movedim(1, -1) : weight;
  at::Tensor wide = kernels::scratch(order.sizes(), x.scalar_type());
  wide.copy_(order);
  return channels_last(x) ? wide.movedim(-1, 1) : wide;
}

std::vector<std::int64_t> full(const std::vector<std::int64_t>& axes) {  // of three axes
  return axes.size() == 1 ? std::vector<std::int64_t>(3, axes[0]) : axes;
}

// at::convolution sends small f32 volumes to a kernel that unfolds them: a copy of 27 times the input.
bool takes_onednn_itself(const at::Tensor& x, bool transposed) {
  return !transposed && x.dim() == 5 && x.is_cpu() && x.scalar_type() == at::kFloat &&
         at::globalContext().hasMKLDNN();
}

at::Tensor run(const Conv& layer, const at::Tensor& x, const ConvGeometry& geometry, bool transposed) {
  at::Tensor bias = layer.bias.defined() ? layer.bias.to(x.scalar_type()) : layer.bias;
  if (takes_onednn_itself(x, transposed))
    return at::mkldnn_convolution(x, operand(layer.weight, x), bias, full(geometry.padding),
                                  full(geometry.stride), full(geometry.dilation), /*groups=*/1);
  return at::convolution(x, operand(layer.weight, x), bias, geometry.stride, geometry.padding,
                         geometry.dilation, transposed, /*output_padding=*/{0}, /*groups=*/1);
}

// `axis`: of the weight's output channels.
Conv output_channels(const Conv& layer, std::int64_t axis, std::int64_t first, std::int64_t count) {
  return {.weight = layer.weight.narrow(axis, first, count),
          .bias = layer.bias.defined() ? layer.bias.narrow(0, first, count) : layer.bias};
}

at::Tensor empty_output(const at::Tensor& part, std::int64_t channels) {
  std::vector<std::int64_t> shape = part.sizes().vec();
  shape[1] = channels;
  return at::empty(shape, part.options().memory_format(part.suggest_memory_format()));
}

at::Tensor run_in_tiles(const Conv& layer, const at::Tensor& x, const ConvGeometry& geometry,
                        bool transposed) {
  const std::int64_t axis = transposed ? 1 : 0;
  const std::int64_t channels = layer.weight.size(axis);
  const std::int64_t channel_bytes =
      layer.weight.numel() / channels * static_cast<std::int64_t>(x.element_size());
  const std::int64_t tile = std::max<std::int64_t>(kConvWeightTile / channel_bytes, 1);
  if (tile >= channels) return run(layer, x, geometry, transposed);
  at::Tensor out;
  for (std::int64_t first = 0; first < channels; first += tile) {
    const std::int64_t count = std::min(tile, channels - first);
    at::Tensor part = run(output_channels(layer, axis, first, count), x, geometry, transposed);
    if (!out.defined()) out = empty_output(part, channels);
    out.narrow(1, first, count).copy_(part);
  }
  return out;
}

}  // namespace

void declare(const weights::ParameterScope& scope, Conv& layer, const ConvShape& shape) {
  scope.add("weight", layer.weight, weight_shape(shape.out, shape.in, shape.kernel));
  if (shape.bias == Bias::yes) scope.add("bias", layer.bias, {shape.out});
}

void declare_transposed(const weights::ParameterScope& scope, Conv& layer, const ConvShape& shape) {
  scope.add("weight", layer.weight, weight_shape(shape.in, shape.out, shape.kernel));
  if (shape.bias == Bias::yes) scope.add("bias", layer.bias, {shape.out});
}

at::Tensor conv(const Conv& layer, const at::Tensor& x, const ConvGeometry& geometry) {
  return run_in_tiles(layer, x, geometry, /*transposed=*/false);
}

at::Tensor conv_transposed(const Conv& layer, const at::Tensor& x, const ConvGeometry& geometry) {
  return run_in_tiles(layer, x, geometry, /*transposed=*/true);
}

void pixel_norm_silu_into(at::Tensor out, const at::Tensor& x, double eps) {
  at::Tensor wide = x.to(at::kFloat);
  at::Tensor rms = at::linalg_vector_norm(wide, 2, {1}, /*keepdim=*/true);
  rms = rms.square_().div_(x.size(1)).add_(eps).sqrt_();
  if (out.scalar_type() == at::kFloat) {
    at::div_out(out, wide, rms);
    at::silu_(out);
  } else {
    at::Tensor normed = at::div(wide, rms);
    out.copy_(at::silu_(normed));
  }
}

at::Tensor pixel_norm_silu(const at::Tensor& x, double eps) {
  at::Tensor out = at::empty_like(x);
  pixel_norm_silu_into(out, x, eps);
  return out;
}

}  // namespace sluice::nn
