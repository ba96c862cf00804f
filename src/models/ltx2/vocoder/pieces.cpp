#include "models/ltx2/vocoder/pieces.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kTime = 2;  // axis

}  // namespace

at::Tensor in_pieces(const at::Tensor& x, const PieceShape& shape,
                     const std::function<at::Tensor(const at::Tensor&)>& layer) {
  const std::int64_t n = x.size(kTime);
  if (n <= shape.samples + 2 * shape.reach) return layer(x);
  at::Tensor out;
  for (std::int64_t begin = 0; begin < n; begin += shape.samples) {
    const std::int64_t end = std::min(begin + shape.samples, n);
    const std::int64_t first = std::max<std::int64_t>(begin - shape.reach, 0);
    const std::int64_t last = std::min(end + shape.reach, n);
    const at::Tensor piece = layer(x.narrow(kTime, first, last - first));
    // What the layer adds at the end of a wave belongs to the last piece.
    const std::int64_t extra = piece.size(kTime) - (last - first) * shape.factor;
    if (!out.defined())
      out = at::empty({x.size(0), piece.size(1), n * shape.factor + extra}, piece.options());
    const std::int64_t length = (end - begin) * shape.factor + (end == n ? extra : 0);
    out.narrow(kTime, begin * shape.factor, length)
        .copy_(piece.narrow(kTime, (begin - first) * shape.factor, length));
  }
  return out;
}

std::int64_t samples_in(std::int64_t bytes, std::int64_t batch, std::int64_t channels) {
  return std::max<std::int64_t>(bytes / (batch * channels * std::int64_t{sizeof(float)}), 1);
}

}  // namespace sluice::ltx2
