#pragma once
// AdaLN-single: a timestep becomes rows that shift, scale and gate a stream.
//   sinusoid = [cos(t e), sin(t e)], e_i = exp(-ln(10000) i / 128), i = 0…127, in f32;
//   embedding = L2(silu(L1(sinusoid))); rows = linear(silu(embedding)), read as `rows` vectors of the
//   stream's width.
// Many tokens share a timestep, so everything is computed and kept once for each distinct value; kernels look
// up which one a token has.

#include "kernels/row_vectors.h"
#include "kernels/workspace.h"
#include "nn/layers.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::ltx2 {

struct AdaLayerNorm {
  std::int64_t rows = 0;
  nn::Linear linear_1, linear_2;  // 256 -> width -> width
  nn::Linear linear;              // width -> rows · width
};

void declare(const weights::ParameterScope& scope, AdaLayerNorm& layer, std::int64_t width,
             std::int64_t rows);

at::Tensor timestep_sinusoid(const at::Tensor& timesteps);  // [n] f32 -> [n, 256] f32

// The result for a batch of timesteps [batch, tokens] (tokens may be 1), in a scope of the workspace that its
// tensors are taken from.
class Modulation {
 public:
  Modulation() = default;
  Modulation(const AdaLayerNorm& layer, const at::Tensor& timesteps, at::ScalarType dtype,
             kernels::Workspace& workspace);

  // table[row] + modulation row, for every token.  `table` is [rows, width], in any dtype.
  kernels::RowVectors row(const at::Tensor& table, std::int64_t row, kernels::Workspace& workspace) const;
  // table[row] + the embedding before silu, for every token.
  kernels::RowVectors embedding(const at::Tensor& table, std::int64_t row,
                                kernels::Workspace& workspace) const;

 private:
  kernels::RowVectors sum(const at::Tensor& distinct, const at::Tensor& vector,
                          kernels::Workspace& workspace) const;

  at::Tensor embedding_;  // [distinct, width]
  at::Tensor rows_;       // [distinct, rows, width]
  at::Tensor index_;      // [batch · tokens] into the distinct ones
  std::int64_t batch_ = 0;
  std::int64_t tokens_ = 0;
};

}  // namespace sluice::ltx2
