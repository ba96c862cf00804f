#include "models/ltx2/upsampler/clip_norm.h"

#include "kernels/group_norm.h"

#include <ATen/ATen.h>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kGroups = 32;
constexpr double kEps = 1e-5;

template <typename T>
void norm_spans(const GroupNorm& norm, const at::Tensor& clip, NormSpan span, const at::Tensor& skip) {
  const at::Tensor weight = norm.weight.to(at::kFloat).contiguous();
  const at::Tensor bias = norm.bias.to(at::kFloat).contiguous();
  const kernels::GroupNormWeights weights = {.weight = weight.const_data_ptr<float>(),
                                             .bias = bias.const_data_ptr<float>(),
                                             .groups = kGroups,
                                             .eps = kEps};
  const std::int64_t spans = span == NormSpan::clip ? 1 : clip.size(0), values = clip.numel() / spans;
  for (std::int64_t i = 0; i < spans; ++i) {
    kernels::NormedPositions<T> x = {.values = static_cast<T*>(clip.data_ptr()) + i * values,
                                     .count = values / clip.size(3),
                                     .channels = clip.size(3)};
    if (skip.defined()) x.skip = static_cast<const T*>(skip.const_data_ptr()) + i * values;
    kernels::group_norm_silu(x, weights);
  }
}

}  // namespace

void norm_silu(const GroupNorm& norm, const at::Tensor& clip, NormSpan span, const at::Tensor& skip) {
  clip.scalar_type() == at::kFloat ? norm_spans<float>(norm, clip, span, skip)
                                   : norm_spans<kernels::Bf16>(norm, clip, span, skip);
}

}  // namespace sluice::ltx2
