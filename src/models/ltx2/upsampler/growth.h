#pragma once
// Where a clip grows: a convolution makes several values of each place, a shuffle lays them side by side, and
// for scales that are no whole number a blur keeps every so many-th row and column.

#include "models/ltx2/upsampler/config.h"
#include "nn/conv.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::ltx2 {

struct LatentSize {
  std::int64_t frames = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool operator==(const LatentSize&) const = default;
};

inline constexpr std::int64_t kBlurTaps = 5;  // along rows and columns

struct Growth {
  std::int64_t frames = 1, rows = 1, columns = 1;  // that one becomes
  std::int64_t step = 1;  // of the rows and columns that are kept; above 1: after a blur

  static Growth of(const UpsamplerConfig& config);

  std::int64_t values() const { return frames * rows * columns; }
  bool blurs() const { return step > 1; }
  // With the first frames - 1 frames gone: a clip's first latent frame is one pixel frame.
  LatentSize grown(const LatentSize& size) const;
};

// clip: [F, H, W, C] -> [F', H', W', C], contiguous.  conv: C -> values() · C, channel
// ((c · frames + t) · rows + h) · columns + w is channel c at place (t, h, w); blur: [1, 1, kBlurTaps,
// kBlurTaps], zeros around.
at::Tensor grow(const nn::Conv& conv, const at::Tensor& blur, const Growth& growth, const at::Tensor& clip);

// Bytes that it takes beside clip and result, of the result those before the frames that stay, and the block
// of kernels/scratch.h.
std::int64_t grow_memory(const Growth& growth, const LatentSize& size, std::int64_t channels,
                         at::ScalarType dtype);

}  // namespace sluice::ltx2
