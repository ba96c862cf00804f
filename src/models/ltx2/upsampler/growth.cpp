#include "models/ltx2/upsampler/growth.h"

#include "models/ltx2/upsampler/clip_conv.h"

#include <ATen/ATen.h>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kReach = kBlurTaps / 2;

std::int64_t kept(std::int64_t places, std::int64_t step) {
  return (places - 1) / step + 1;
}

// [n, H, W, values · C] as it is laid out: [n, frames, H, rows, W, columns, C].
at::Tensor side_by_side(const Growth& growth, const at::Tensor& piece) {
  return piece.unflatten(3, {-1, growth.frames, growth.rows, growth.columns}).permute({0, 4, 1, 5, 2, 6, 3});
}

void shuffle(const Growth& growth, std::int64_t first, const at::Tensor& piece, const at::Tensor& to) {
  const at::Tensor from = side_by_side(growth, piece);
  to.narrow(0, first * growth.frames, piece.size(0) * growth.frames).view(from.sizes()).copy_(from);
}

// One frame [H, rows, W, columns, C] through the blur; f32 sums.
at::Tensor blurred(const at::Tensor& kernel, const at::Tensor& from, std::int64_t step) {
  const std::int64_t height = from.size(0) * from.size(1), width = from.size(2) * from.size(3);
  const std::int64_t channels = from.size(4);
  const at::Tensor bordered =
      at::zeros({height + 2 * kReach, width + 2 * kReach, channels}, from.options().dtype(at::kFloat));
  bordered.narrow(0, kReach, height)
      .narrow(1, kReach, width)
      .unflatten(1, {from.size(2), from.size(3)})
      .unflatten(0, {from.size(0), from.size(1)})
      .copy_(from);
  at::Tensor sum = at::zeros({kept(height, step), kept(width, step), channels}, bordered.options());
  for (std::int64_t row = 0; row < kBlurTaps; ++row) {
    for (std::int64_t column = 0; column < kBlurTaps; ++column)
      sum.add_(bordered.slice(0, row, row + height, step).slice(1, column, column + width, step),
               kernel[row][column].item<float>());
  }
  return sum;
}

}  // namespace

Growth Growth::of(const UpsamplerConfig& config) {
  const std::int64_t places = config.spatial ? config.scale_num : 1;
  return {.frames = config.temporal ? 2 : 1, .rows = places, .columns = places, .step = config.scale_den};
}

LatentSize Growth::grown(const LatentSize& size) const {
  return {size.frames * frames - (frames - 1), kept(size.height * rows, step),
          kept(size.width * columns, step)};
}

at::Tensor grow(const nn::Conv& conv, const at::Tensor& blur, const Growth& growth, const at::Tensor& clip) {
  const LatentSize to = growth.grown({clip.size(0), clip.size(1), clip.size(2)});
  const at::Tensor y =
      at::empty({clip.size(0) * growth.frames, to.height, to.width, clip.size(3)}, clip.options());
  const at::Tensor kernel = growth.blurs() ? blur.to(at::kFloat).view({kBlurTaps, kBlurTaps}) : at::Tensor();
  clip_conv_pieces(conv, clip, [&](std::int64_t first, const at::Tensor& piece) {
    if (!growth.blurs()) return shuffle(growth, first, piece, y);
    for (std::int64_t i = 0; i < piece.size(0); ++i)
      y[first + i].copy_(blurred(kernel, side_by_side(growth, piece)[i][0], growth.step));
  });
  return y.narrow(0, growth.frames - 1, to.frames);
}

std::int64_t grow_memory(const Growth& growth, const LatentSize& size, std::int64_t channels,
                         at::ScalarType dtype) {
  const auto value = static_cast<std::int64_t>(c10::elementSize(dtype));
  const LatentSize to = growth.grown(size);
  const ClipConvSize conv = {.frames = size.frames, .height = size.height, .width = size.width};
  const std::int64_t dropped = (growth.frames - 1) * to.height * to.width * channels * value;
  const std::int64_t piece = conv.piece() * size.height * size.width * growth.values() * channels * value;
  if (!growth.blurs()) return dropped + piece;
  const std::int64_t bordered =
      (size.height * growth.rows + 2 * kReach) * (size.width * growth.columns + 2 * kReach);
  return dropped + piece +
         (bordered + to.height * to.width) * channels * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace sluice::ltx2
