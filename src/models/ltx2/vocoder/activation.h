#pragma once
// The antialiased activation of the generators (kernels/smooth_snake.h).  Its filters come with the
// checkpoint: a computed one is not the trained one.

#include "kernels/smooth_snake.h"
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

// x + sin²(x · e^α) / (e^β + 1e-9) between the filters; while the layer's weights are leased.
kernels::SmoothSnake smooth_snake(const AntialiasedSnake& layer);

// All rows, on all threads.  x, y: [rows, channels].
void run(const kernels::SmoothSnake& snake, const float* x, std::int64_t rows, float* y);

}  // namespace sluice::ltx2
