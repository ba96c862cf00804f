#pragma once
// Slots of a convolution's weights, over one, two or three axes.  Models compute with kernels/frame_conv.h
// and kernels/conv_line.h.

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

void declare(const weights::ParameterScope& scope, Conv& layer, const ConvShape& shape);
void declare_transposed(const weights::ParameterScope& scope, Conv& layer, const ConvShape& shape);

}  // namespace sluice::nn
