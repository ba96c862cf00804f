#include "kernels/low_rank.h"

#include <ATen/ATen.h>

namespace sluice::kernels {
namespace {

// With whole words of 4 bytes, as products read their rows.
std::int64_t padded(std::int64_t rank, at::ScalarType dtype) {
  return dtype == at::kBFloat16 ? rank + rank % 2 : rank;
}

}  // namespace

std::vector<Factors> low_rank_factors(const at::Tensor& x, std::span<const LowRank> adapters,
                                      Workspace& workspace) {
  std::vector<Factors> factors;
  for (const LowRank& adapter : adapters) {
    const std::int64_t rank = adapter.down.size(0);
    auto sizes = x.sizes().vec();
    sizes.back() = padded(rank, x.scalar_type());
    at::Tensor whole = workspace.take(sizes, x.scalar_type()), inner = whole.narrow(-1, 0, rank);
    whole.narrow(-1, rank, sizes.back() - rank).zero_();
    const Factors down[] = {{x, adapter.down}};
    packed_product(down, {}, {.factor = adapter.factor}, workspace, inner);
    factors.push_back({whole, adapter.up});
  }
  return factors;
}

Bytes low_rank_scratch(std::int64_t tokens, std::span<const std::int64_t> ranks, at::ScalarType dtype) {
  Bytes bytes = 0;
  for (const std::int64_t rank : ranks) bytes += Workspace::size_of({tokens, padded(rank, dtype)}, dtype);
  return bytes;
}

}  // namespace sluice::kernels
