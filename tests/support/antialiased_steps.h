#pragma once
// The vocoder's activation step by step, as fixtures have it: the steps by the kernel's plain twins, the
// result by the kernel, which does not know steps.

#include "kernels/smooth_snake.h"
#include "models/ltx2/vocoder/activation.h"

#include <ATen/ATen.h>

#include <span>

namespace sluice::test {

struct AntialiasedSteps {
  at::Tensor upsampled, activated;  // [batch, channels, n · ratio]
  at::Tensor result;                // [batch, channels, n]
};

// x: [batch, channels, n], f32; while the layer's weights are leased.
inline AntialiasedSteps antialiased_steps(const ltx2::AntialiasedSnake& layer, const at::Tensor& x) {
  const auto numbers = [](const at::Tensor& t) {
    return std::span(t.const_data_ptr<float>(), static_cast<std::size_t>(t.numel()));
  };
  const at::Tensor up = layer.upsample_filter.contiguous(), down = layer.downsample_filter.contiguous();
  const at::Tensor frequency = layer.alpha.exp(), amplitude = 1 / (layer.beta.exp() + 1e-9);
  const kernels::SnakeFilters filters = {
      .ratio = layer.config.ratio, .up = numbers(up), .down = numbers(down)};
  const kernels::SmoothSnake snake = ltx2::smooth_snake(layer);
  const std::int64_t channels = x.size(1), n = x.size(2);
  std::vector<at::Tensor> upsampled, activated, result;
  for (const at::Tensor& clip : x.unbind(0)) {
    const at::Tensor rows = clip.t().contiguous();
    at::Tensor raised = at::empty({n * filters.ratio, channels}), y = at::empty({n, channels});
    kernels::reference::snake_up(filters, rows.data_ptr<float>(), n, channels, raised.data_ptr<float>());
    upsampled.push_back(raised.clone().t());
    kernels::reference::snake(numbers(frequency), numbers(amplitude), raised.data_ptr<float>(),
                              n * filters.ratio);
    activated.push_back(raised.t());
    snake.run(rows.data_ptr<float>(), n, 0, n, y.data_ptr<float>());
    result.push_back(y.t());
  }
  return {at::stack(upsampled), at::stack(activated), at::stack(result)};
}

}  // namespace sluice::test
