#include "sampling/finite.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace sluice::sampling {
namespace {

// The flat index of an element as indices of its axes.
std::vector<std::int64_t> unravel(std::int64_t flat, at::IntArrayRef shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return index;
}

}  // namespace

void check_finite(const at::Tensor& values, std::string_view what) {
  const at::Tensor finite = at::isfinite(values);
  if (finite.all().item<bool>()) return;
  const at::Tensor bad = at::nonzero(finite.flatten().logical_not());  // [bad values, 1]
  const auto first = bad[0][0].item<std::int64_t>();
  throw Error(
      ErrorKind::non_finite,
      fmt::format("{}: {} of {} values are not finite, the first {} at {}", what, bad.size(0), values.numel(),
                  values.flatten()[first].item<double>(), unravel(first, values.sizes())),
      "--compute-dtype f32 rules out overflow; injected tensors must be finite");
}

}  // namespace sluice::sampling
