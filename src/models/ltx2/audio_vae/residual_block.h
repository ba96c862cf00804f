#pragma once
// What encoder and decoder of the audio autoencoder are built from: convolutions under their names, and
// residual blocks of two.

#include "nn/conv.h"
#include "weights/parameters.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::ltx2 {

struct AudioResidualBlock {
  nn::Conv conv1, conv2;
  nn::Conv nin_shortcut;  // only where channels change
};

// "<scope>.conv.weight", as the reference names a convolution that pads its own input.
void declare_causal_conv(const weights::ParameterScope& scope, nn::Conv& conv, std::int64_t in,
                         std::int64_t out, std::int64_t kernel = 3);
void declare(const weights::ParameterScope& scope, AudioResidualBlock& block, std::int64_t in,
             std::int64_t out);

// x: [time steps, mel bins, channels] -> the same, with the block's own channels.
at::Tensor residual_block(const AudioResidualBlock& block, const at::Tensor& x);

}  // namespace sluice::ltx2
