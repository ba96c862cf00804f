#pragma once
// The antialiased activation of the generators: y = down(snake(up(x))), so that the harmonics which snake
// makes do not fold back.  The filters come with the checkpoint: a computed one is not the trained one.

#include "models/ltx2/vocoder/config.h"
#include "weights/parameters.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::ltx2 {

struct AntialiasedSnake {
  AntialiasConfig config;
  at::Tensor alpha, beta;                         // [channels], logarithms
  at::Tensor upsample_filter, downsample_filter;  // [1, 1, kernel_size]
};

void declare(const weights::ParameterScope& scope, AntialiasedSnake& layer, std::int64_t channels,
             AntialiasConfig config);

// x: [batch, channels, n], f32.
at::Tensor upsample(const AntialiasedSnake& layer, const at::Tensor& x);  // -> [batch, channels, n · ratio]
at::Tensor snake_beta(const AntialiasedSnake& layer,
                      const at::Tensor& x);  // x + sin²(x · e^α) / (e^β + 1e-9)
at::Tensor downsample(const AntialiasedSnake& layer, const at::Tensor& x);  // -> [batch, channels, n / ratio]

at::Tensor antialiased_snake(const AntialiasedSnake& layer, const at::Tensor& x);  // shape of x; in pieces
std::int64_t activation_piece(std::int64_t batch, std::int64_t channels);          // samples at once

}  // namespace sluice::ltx2
