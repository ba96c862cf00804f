#include "nn/rope.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace sluice::nn {
namespace {

// [n] f32: theta^linspace(0, 1, n) · pi / 2.
at::Tensor frequencies(const RopeConfig& config, std::int64_t count) {
  auto dtype = config.double_precision ? at::kDouble : at::kFloat;
  at::Tensor exponents = at::linspace(0.0, 1.0, count, at::TensorOptions().dtype(dtype));
  at::Tensor power = at::pow(at::full({}, config.theta, exponents.options()), exponents);
  return (power * (std::numbers::pi / 2)).to(at::kFloat);
}

// [batch, tokens, n · axes]: frequency outer, axis inner.
at::Tensor angles(const RopeConfig& config, const at::Tensor& positions) {
  const std::int64_t axes = positions.size(1);
  std::vector<at::Tensor> scaled;
  for (std::int64_t axis = 0; axis < axes; ++axis) {
    scaled.push_back(positions.select(1, axis) / config.max_pos[static_cast<std::size_t>(axis)]);
  }
  at::Tensor grid = at::stack(scaled, -1);  // [batch, tokens, axes]
  at::Tensor freqs = frequencies(config, config.dim / (2 * axes));
  at::Tensor table = (grid.unsqueeze(-1) * 2 - 1) * freqs;  // [batch, tokens, axes, n]
  return table.transpose(-1, -2).flatten(2);
}

at::Tensor rotate_split(const RopeTable& table, const at::Tensor& x) {
  const std::int64_t batch = x.size(0), tokens = x.size(1), heads = table.cos.size(1);
  at::Tensor halves = x.view({batch, tokens, heads, 2, -1});
  at::Tensor cos = table.cos.transpose(1, 2),
             sin = table.sin.transpose(1, 2);  // [batch, tokens, heads, half]
  at::Tensor first = halves.select(3, 0).to(at::kFloat), second = halves.select(3, 1).to(at::kFloat);
  at::Tensor y = at::empty_like(halves);
  y.select(3, 0).copy_(first * cos - second * sin);
  y.select(3, 1).copy_(second * cos + first * sin);
  return y.view(x.sizes());
}

at::Tensor rotate_interleaved(const RopeTable& table, const at::Tensor& x) {
  at::Tensor pairs = x.to(at::kFloat).unflatten(2, {-1, 2});
  at::Tensor turned = at::stack({-pairs.select(3, 1), pairs.select(3, 0)}, -1).flatten(2);
  return (x.to(at::kFloat) * table.cos + turned * table.sin).to(x.scalar_type());
}

}  // namespace

RopeLayout parse_rope_layout(std::string_view name) {
  if (name == "split") return RopeLayout::split;
  if (name == "interleaved") return RopeLayout::interleaved;
  throw Error(ErrorKind::bad_input, fmt::format("unknown rope_type '{}'", name),
              "known are split and interleaved");
}

RopeTable make_rope_table(const RopeConfig& config, const at::Tensor& positions) {
  at::Tensor flat = angles(config, positions);
  at::Tensor cos = flat.cos(), sin = flat.sin();
  const std::int64_t batch = flat.size(0), tokens = flat.size(1);
  if (config.layout == RopeLayout::interleaved) {
    const std::int64_t padding = config.dim - 2 * flat.size(2);
    auto widen = [&](const at::Tensor& half, double fill) {
      at::Tensor front = at::full({batch, tokens, padding}, fill, half.options());
      return at::cat({front, half.repeat_interleave(2, -1)}, -1);
    };
    return {widen(cos, 1.0), widen(sin, 0.0)};
  }
  const std::int64_t padding = config.dim / 2 - flat.size(2);
  auto split = [&](const at::Tensor& half, double fill) {
    at::Tensor front = at::full({batch, tokens, padding}, fill, half.options());
    return at::cat({front, half}, -1).view({batch, tokens, config.heads, -1}).transpose(1, 2).contiguous();
  };
  return {split(cos, 1.0), split(sin, 0.0)};
}

at::Tensor apply_rope(const RopeTable& table, RopeLayout layout, const at::Tensor& x) {
  return layout == RopeLayout::split ? rotate_split(table, x) : rotate_interleaved(table, x);
}

}  // namespace sluice::nn
