#include "models/ltx2/vocoder/activation.h"

#include "kernels/tasks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <span>

namespace sluice::ltx2 {
namespace {

constexpr double kEps = 1e-9;
constexpr std::int64_t kTaskValues = std::int64_t{1} << 17;  // some 100 µs

std::span<const float> numbers(const at::Tensor& x) {  // f32, contiguous
  return {x.const_data_ptr<float>(), static_cast<std::size_t>(x.numel())};
}

at::Tensor wide(const at::Tensor& x) {
  return x.to(at::kFloat).contiguous();
}

}  // namespace

void declare(const weights::ParameterScope& scope, AntialiasedSnake& layer, std::int64_t channels,
             AntialiasConfig config) {
  layer.config = config;
  scope.add("act.alpha", layer.alpha, {channels});
  scope.add("act.beta", layer.beta, {channels});
  scope.add("upsample.filter", layer.upsample_filter, {1, 1, config.kernel_size});
  scope.add("downsample.filter", layer.downsample_filter, {1, 1, config.kernel_size});
}

kernels::SmoothSnake smooth_snake(const AntialiasedSnake& layer) {
  const at::Tensor up = wide(layer.upsample_filter), down = wide(layer.downsample_filter);
  const at::Tensor frequency = wide(layer.alpha).exp();
  const at::Tensor amplitude = wide(layer.beta).exp().add_(kEps).reciprocal_();
  return {{.ratio = layer.config.ratio, .up = numbers(up), .down = numbers(down)},
          numbers(frequency),
          numbers(amplitude)};
}

void run(const kernels::SmoothSnake& snake, const float* x, std::int64_t rows, float* y) {
  const std::int64_t step = std::max<std::int64_t>(kTaskValues / snake.channels(), 1);
  kernels::each_task(at::get_num_threads(), (rows + step - 1) / step, [&](std::int64_t, std::int64_t task) {
    const std::int64_t begin = task * step;
    snake.run(x, rows, begin, std::min(begin + step, rows), y + begin * snake.channels());
  });
}

}  // namespace sluice::ltx2
