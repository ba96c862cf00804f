#pragma once
// Rotary position tables of LTX-2 (transformer and connectors) and their application.
// Table: position p in [0, max_pos] becomes f = p / max_pos, angle = (2 f - 1) · freqs[k] with
// freqs = f32(theta^linspace(0, 1, n) · pi / 2), flattened with the frequency outer and the axis inner.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::nn {

enum class RopeLayout {
  split,        // two halves of each head rotate against each other; heads see different frequencies
  interleaved,  // neighbouring pairs of the full width
};

RopeLayout parse_rope_layout(std::string_view name);  // Error(bad_input) for another word

struct RopeConfig {
  std::int64_t dim = 0;  // width of q and k, all heads
  std::int64_t heads = 0;
  std::vector<double> max_pos;  // one an axis
  double theta = 10000.0;
  bool double_precision = true;  // frequencies in f64, rounded once to f32
  RopeLayout layout = RopeLayout::split;
};

// f32.  split: [batch, heads, tokens, dim / heads / 2]; interleaved: [batch, tokens, dim].
struct RopeTable {
  at::Tensor cos;
  at::Tensor sin;
};

// positions: f32 [batch, axes, tokens], the middles of the tokens' bounds.
RopeTable make_rope_table(const RopeConfig& config, const at::Tensor& positions);

// x: [batch, tokens, dim] -> the same, rotated in f32, in x's dtype.
at::Tensor apply_rope(const RopeTable& table, RopeLayout layout, const at::Tensor& x);

}  // namespace sluice::nn
