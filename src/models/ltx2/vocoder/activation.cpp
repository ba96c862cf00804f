#include "models/ltx2/vocoder/activation.h"

#include "models/ltx2/vocoder/filter.h"
#include "models/ltx2/vocoder/pieces.h"

#include <ATen/ATen.h>

namespace sluice::ltx2 {
namespace {

constexpr double kEps = 1e-9;

at::Tensor per_channel(const at::Tensor& logarithm) {
  return logarithm.to(at::kFloat).exp().view({1, -1, 1});
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

at::Tensor upsample(const AntialiasedSnake& layer, const at::Tensor& x) {
  const auto [ratio, kernel] = layer.config;
  const std::int64_t pad = kernel / ratio - 1;
  return filter_up(x, layer.upsample_filter,
                   {.ratio = ratio,
                    .pad = pad,
                    .cut_left = pad * ratio + (kernel - ratio) / 2,
                    .cut_right = pad * ratio + (kernel - ratio + 1) / 2});
}

at::Tensor snake_beta(const AntialiasedSnake& layer, const at::Tensor& x) {
  at::Tensor wave = (x * per_channel(layer.alpha)).sin_().square_();
  return wave.mul_((per_channel(layer.beta) + kEps).reciprocal_()).add_(x);
}

at::Tensor downsample(const AntialiasedSnake& layer, const at::Tensor& x) {
  const auto [ratio, kernel] = layer.config;
  return filter_down(x, layer.downsample_filter,
                     {.ratio = ratio, .pad_left = kernel / 2 + kernel % 2 - 1, .pad_right = kernel / 2});
}

at::Tensor antialiased_snake(const AntialiasedSnake& layer, const at::Tensor& x) {
  // A sample looks at half a kernel at the higher rate twice, and at the border copies around it.
  const PieceShape shape = {.samples = activation_piece(x.size(0), x.size(1)),
                            .reach = 2 * layer.config.kernel_size};
  return in_pieces(x, shape, [&](const at::Tensor& piece) {
    return downsample(layer, snake_beta(layer, upsample(layer, piece)));
  });
}

std::int64_t activation_piece(std::int64_t batch, std::int64_t channels) {
  return samples_in(kSoundPiece, batch, channels);
}

}  // namespace sluice::ltx2
