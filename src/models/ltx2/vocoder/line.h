#pragma once
// The vocoder's convolutions as the kernel takes them (kernels/conv_line.h).  All while weights are leased.

#include "kernels/conv_line.h"
#include "nn/conv.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::ltx2 {

// Shapes alone, for plans.
kernels::LineConv same_line(std::int64_t in, std::int64_t out, std::int64_t kernel,
                            std::int64_t dilation = 1);  // as many rows out as in
kernels::LineConv raising_line(std::int64_t in, std::int64_t out, std::int64_t kernel,
                               std::int64_t factor);  // `factor` times as many

// Rows of zeros that a convolution needs around its input.
std::int64_t rows_around(const kernels::LineConv& conv);

// The same with a layer's weights.
class Line {
 public:
  static Line same(const nn::Conv& layer, std::int64_t dilation = 1);
  static Line raising(const nn::Conv& layer, std::int64_t factor);

  const kernels::LineConv& conv() const { return conv_; }

 private:
  Line(const nn::Conv& layer, kernels::LineConv conv);

  at::Tensor weight_, bias_;
  kernels::LineConv conv_;
};

// Rows of a matrix product: y[row] = W · x[row], W: [out, in] of any floating dtype.  Rows of x, `stride`
// values apart, may overlap; returns [rows, out].
at::Tensor multiply_rows(const at::Tensor& weight, const float* x, std::int64_t rows, std::int64_t stride);

}  // namespace sluice::ltx2
