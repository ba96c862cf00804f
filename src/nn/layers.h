#pragma once
// Linear layers and norms: small structs of weight slots, and functions over them.  The dtype of the input is
// the compute dtype; weights of any dtype are widened on the way (kernels/linear.h).

#include "aten/low_rank.h"
#include "kernels/epilogue.h"
#include "kernels/matrix.h"
#include "kernels/workspace.h"
#include "weights/parameters.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::nn {

enum class Bias { no, yes };

struct Linear {
  at::Tensor weight;  // values of [out, in] as kernels/matrix.h says
  at::Tensor scales;  // undefined where the weight is not quantized
  at::Tensor bias;    // [out], undefined without
  LowRanks adapters;  // that are added to the weight's product; filled and emptied by leases, as the others
  std::int64_t in = 0;
  std::int64_t out = 0;
};

struct LinearShape {
  std::int64_t in = 0;
  std::int64_t out = 0;  // as in the file
  Bias bias = Bias::yes;
  weights::RowRange rows = {};  // of weight and bias; the layer's `out` is then their number
};

void declare(const weights::ParameterScope& scope, Linear& layer, LinearShape shape);

kernels::Matrix matrix(const Linear& layer);  // the weight without adapters, while its group is leased

// Functions with a Workspace leave their result in `y`, a tensor of the caller, and take what lives
// meanwhile from there; those without allocate.

// [..., in] -> [..., out], and what follows it (kernels/epilogue.h).
void linear(const Linear& layer, const at::Tensor& x, const kernels::Epilogue& epilogue,
            kernels::Workspace& workspace, at::Tensor& y);
at::Tensor linear(const Linear& layer, const at::Tensor& x);
at::Tensor linear_gelu_tanh(const Linear& layer,
                            const at::Tensor& x);  // gelu, tanh approximation, of the same

// x / sqrt(mean(x²) + eps) over the last axis · (1 + scale) + shift in one pass, rounded once; scale and
// shift broadcast over tokens.
at::Tensor modulated_rms_norm(const at::Tensor& x, double eps, const at::Tensor& scale,
                              const at::Tensor& shift);

// Linear(dim, inner), gelu tanh, Linear(inner, dim): names net.0.proj and net.2.
struct FeedForward {
  Linear up;
  Linear down;
};

struct FeedForwardShape {
  std::int64_t dim = 0;
  std::int64_t inner = 0;
  Bias bias = Bias::yes;
};

void declare(const weights::ParameterScope& scope, FeedForward& layer, FeedForwardShape shape);

// [batch, tokens, dim] -> the same.  Tokens go through in pieces, so that the inner values take at most
// kInnerBytes.
inline constexpr std::int64_t kInnerBytes = 64 << 20;
void feed_forward(const FeedForward& layer, const at::Tensor& x, const kernels::Epilogue& epilogue,
                  kernels::Workspace& workspace, at::Tensor& y);

}  // namespace sluice::nn
