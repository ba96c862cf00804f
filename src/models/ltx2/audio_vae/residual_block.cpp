#include "models/ltx2/audio_vae/residual_block.h"

#include "models/ltx2/audio_vae/causal_conv.h"

namespace sluice::ltx2 {

void declare_causal_conv(const weights::ParameterScope& scope, nn::Conv& conv, std::int64_t in,
                         std::int64_t out, std::int64_t kernel) {
  nn::declare(scope / "conv", conv, {.in = in, .out = out, .kernel = {kernel, kernel}});
}

void declare(const weights::ParameterScope& scope, AudioResidualBlock& block, std::int64_t in,
             std::int64_t out) {
  declare_causal_conv(scope / "conv1", block.conv1, in, out);
  declare_causal_conv(scope / "conv2", block.conv2, out, out);
  if (in != out) declare_causal_conv(scope / "nin_shortcut", block.nin_shortcut, in, out, 1);
}

at::Tensor residual_block(const AudioResidualBlock& block, const at::Tensor& x) {
  const at::Tensor h = normed_causal_conv(block.conv1, x);
  return normed_causal_conv(block.conv2, h,
                            block.nin_shortcut.weight.defined() ? place_conv(block.nin_shortcut, x) : x);
}

}  // namespace sluice::ltx2
