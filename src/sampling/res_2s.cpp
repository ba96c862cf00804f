#include "sampling/res_2s.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sluice::sampling {
namespace {

// The source anchors where log(from / to) is below this and sigma above that.
constexpr double kLongestAnchored = 0.5;
constexpr double kLeastAnchored = 0.03;

// phi_1(-h) and phi_2(-h), h > 0.  expm1 keeps the digits that e^-h - 1 would lose in short steps; phi_2
// loses half of them still, below which its series is exact.
double phi_1(double h) {
  return -std::expm1(-h) / h;
}
double phi_2(double h) {
  if (h < 1e-4) return 0.5 - h / 6 + h * h / 24;
  return (std::expm1(-h) + h) / (h * h);
}

at::Tensor wide(const at::Tensor& x) {
  return x.to(at::kDouble);
}

}  // namespace

std::vector<double> res_2s_sigmas(const std::vector<double>& sigmas) {
  std::vector<double> list = sigmas;
  if (!list.empty() && list.back() == 0) list.insert(list.end() - 1, kSmallestSigma);
  return list;
}

Res2sStep res_2s_step(double from, double to) {
  if (!(from > to && to > 0))
    throw Error(ErrorKind::usage, fmt::format("res_2s: a step from sigma {} to {}", from, to),
                fmt::format("give sigmas that fall, the last above {} or 0", kSmallestSigma));
  const double h = std::log(from / to);
  const double b2 = 2 * phi_2(h);
  return {.from = from,
          .to = to,
          .middle = std::sqrt(from * to),
          .h = h,
          .c = -std::expm1(-h / 2),
          .b1 = phi_1(h) - b2,
          .b2 = b2,
          .anchored = h < kLongestAnchored && from > kLeastAnchored};
}

at::Tensor middle_sample(const Res2sStep& step, const at::Tensor& x, const at::Tensor& x0) {
  return (wide(x) * (1 - step.c)).add_(wide(x0), step.c);
}

at::Tensor anchor(const Res2sStep& step, const at::Tensor& x, const at::Tensor& x0,
                  const at::Tensor& middle) {
  if (!step.anchored) return wide(x);
  return (wide(middle) - wide(x0) * step.c).div_(1 - step.c);
}

at::Tensor next_sample(const Res2sStep& step, const at::Tensor& x, const at::Tensor& x0,
                       const at::Tensor& x0_middle) {
  const double first = step.h * step.b1, second = step.h * step.b2;
  return (wide(x) * (1 - first - second)).add_(wide(x0), first).add_(wide(x0_middle), second);
}

at::Tensor renoise(const at::Tensor& x, const at::Tensor& moved, const at::Tensor& noise, double from,
                   double to, const RenoiseOptions& options) {
  if (options.eta == 0) return wide(moved);
  const double up = std::min(options.eta, 0.9999) * to;
  const double rest = std::sqrt(to * to - up * up);
  const at::Tensor direction = (wide(x) - wide(moved)).div_(from - to);
  const at::Tensor denoised = wide(x).sub(direction, from);
  return (denoised * (1 - to + rest)).add_(direction, rest).add_(wide(noise), up);
}

at::Tensor normal_noise(const at::Tensor& drawn) {
  const at::Tensor rows = wide(drawn).flatten(1);
  const at::Tensor mean = rows.mean(1, /*keepdim=*/true);
  return ((rows - mean) / rows.std(1, /*unbiased=*/true, /*keepdim=*/true)).view(drawn.sizes());
}

}  // namespace sluice::sampling
