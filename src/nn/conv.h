#pragma once
// Convolutions over one, two or three axes: slots of weights, and functions over them.  The dtype of the
// input is the compute dtype; weights of another dtype are widened for the call, in reused memory
// (kernels/scratch.h).

#include "nn/layers.h"
#include "weights/parameters.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sluice::nn {

struct Conv {
  at::Tensor weight;  // [out, in, kernel…]; transposed: [in, out, kernel…]
  at::Tensor bias;    // [out], undefined without
};

struct ConvShape {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::vector<std::int64_t> kernel;
  Bias bias = Bias::yes;
};

struct ConvGeometry {  // one number for each axis, or one for all
  std::vector<std::int64_t> padding = {0};
  std::vector<std::int64_t> stride = {1};
  std::vector<std::int64_t> dilation = {1};
};

// A convolution of larger weights runs over groups of output channels: the widened weights, and the copy that
// oneDNN makes in its own order, would each be as large as the layer (452 MiB in the video decoder) and stay
// in the peak.
constexpr std::int64_t kConvWeightTile = std::int64_t{16} << 20;  // bytes

void declare(const weights::ParameterScope& scope, Conv& layer, const ConvShape& shape);
void declare_transposed(const weights::ParameterScope& scope, Conv& layer, const ConvShape& shape);

// [batch, in, axes…] -> [batch, out, axes…], zero padding; keeps x's memory format.
at::Tensor conv(const Conv& layer, const at::Tensor& x, const ConvGeometry& geometry = {});
at::Tensor conv_transposed(const Conv& layer, const at::Tensor& x, const ConvGeometry& geometry = {});

// x / sqrt(mean over channels (axis 1) of x² + eps), then silu: computed in f32, rounded once to out's dtype.
// out has x's shape and may be a view.
void pixel_norm_silu_into(at::Tensor out, const at::Tensor& x, double eps);
at::Tensor pixel_norm_silu(const at::Tensor& x, double eps);

}  // namespace sluice::nn
