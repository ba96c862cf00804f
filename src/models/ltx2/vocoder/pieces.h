#pragma once
// A layer over time in pieces: where a layer's own temporaries are many times its result (an activation at
// twice the rate, channels filled up to the convolution library's blocks), only a piece's exist at once.
// Exact: a piece brings with it as many samples on either side as the layer looks at.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace sluice::ltx2 {

// Of a piece's input: small enough for a processor's cache, large enough that the samples computed twice do
// not count.
constexpr std::int64_t kSoundPiece = std::int64_t{1} << 20;  // bytes

struct PieceShape {
  std::int64_t samples = 0;  // of the input, a piece
  std::int64_t reach = 0;    // input samples that an output sample looks at on either side, at most
  std::int64_t factor = 1;   // output samples for one of the input
};

// [batch, channels, n] -> [batch, channels', m]; `layer` makes of n samples m, of n' therefore
// m + factor · (n' - n), and treats the ends of what it is given as those of the wave.
at::Tensor in_pieces(const at::Tensor& x, const PieceShape& shape,
                     const std::function<at::Tensor(const at::Tensor&)>& layer);

// Samples of `channels` in f32 that have `bytes`, at least one.
std::int64_t samples_in(std::int64_t bytes, std::int64_t batch, std::int64_t channels);

}  // namespace sluice::ltx2
