#include "kernels/conv_line.h"

#include <algorithm>

namespace sluice::kernels {
namespace {

std::int64_t reach_of(const LineConv& conv) {  // of all taps together
  return (conv.weights.taps - 1) * conv.dilation;
}

LinePhase ordinary_phase(const LineConv& conv) {
  LinePhase phase;
  for (std::int64_t tap = 0; tap < conv.weights.taps; ++tap) {
    phase.taps.push_back(tap);
    phase.rows.push_back(tap * conv.dilation - conv.padding);
  }
  return phase;
}

// i · stride + tap - padding = first + m · stride: those taps that make i whole, and i - m.
LinePhase transposed_phase(const LineConv& conv, std::int64_t first) {
  LinePhase phase{.first = first, .taps = {}, .rows = {}};
  for (std::int64_t tap = conv.weights.taps - 1; tap >= 0; --tap) {  // rows rise
    const std::int64_t distance = first + conv.padding - tap;
    if (distance % conv.stride != 0) continue;
    phase.taps.push_back(tap);
    phase.rows.push_back(distance / conv.stride);
  }
  return phase;
}

}  // namespace

std::int64_t line_rows(const LineConv& conv, std::int64_t rows) {
  return conv.weights.transposed ? (rows - 1) * conv.stride + conv.weights.taps - 2 * conv.padding
                                 : rows + 2 * conv.padding - reach_of(conv);
}

std::vector<LinePhase> line_phases(const LineConv& conv) {
  if (!conv.weights.transposed) return {ordinary_phase(conv)};
  std::vector<LinePhase> phases;
  for (std::int64_t first = 0; first < conv.stride; ++first) phases.push_back(transposed_phase(conv, first));
  return phases;
}

LineReach seen_rows(const std::vector<LinePhase>& phases) {
  LineReach seen;
  for (const LinePhase& phase : phases) {
    for (std::int64_t row : phase.rows) {
      seen.before = std::max(seen.before, -row);
      seen.behind = std::max(seen.behind, row);
    }
  }
  return seen;
}

LineReach line_reach(const LineConv& conv) {
  LineReach reach = seen_rows(line_phases(conv));
  // y has rows of its own for `rows` of x, less or more.
  const std::int64_t rows = conv.weights.taps * conv.dilation;
  const std::int64_t phase_rows = (line_rows(conv, rows) + conv.stride - 1) / conv.stride;
  reach.behind = std::max<std::int64_t>(reach.behind + phase_rows - rows, 0);
  return reach;
}

namespace reference {

void conv_line(const LineConv& conv, const LineInput& input, const LineResult& result) {
  const TapWeights& w = conv.weights;
  const std::int64_t x_stride = input.stride ? input.stride : w.in;
  const std::int64_t y_stride = result.stride ? result.stride : w.out;
  for (std::int64_t t = 0; t < line_rows(conv, input.rows); ++t) {
    for (std::int64_t out = 0; out < w.out; ++out) {
      double sum = conv.bias ? conv.bias[out] : 0;
      const std::int64_t place = t * y_stride + out;
      for (const float* added : result.added) sum += added ? added[place] : 0;
      for (std::int64_t tap = 0; tap < w.taps; ++tap) {
        std::int64_t row = t + tap * conv.dilation - conv.padding;
        if (w.transposed) {
          if ((t + conv.padding - tap) % conv.stride != 0) continue;
          row = (t + conv.padding - tap) / conv.stride;
        }
        if (row < 0 || row >= input.rows) continue;
        for (std::int64_t in = 0; in < w.in; ++in) {
          const std::int64_t pair = w.transposed ? in * w.out + out : out * w.in + in;
          float weight;
          reference::widen_values(w.values, pair * w.taps + tap, 1, &weight);
          sum += static_cast<double>(weight) * input.x[row * x_stride + in];
        }
      }
      result.y[place] = static_cast<float>(result.scale * sum);
    }
  }
}

}  // namespace reference
}  // namespace sluice::kernels
