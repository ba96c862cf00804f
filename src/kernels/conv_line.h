#pragma once
// Convolutions over one axis of channels-last rows, in f32: y = scale · (W ∗ x + bias + what is added).
// Products with neighbouring rows as they lie (micro_product.h), a tap for each segment; nothing is unfolded.
//
//   ordinary:   y[t] = Σ over taps of W[tap] · x[t + tap · dilation - padding]
//   transposed: y[t] = Σ over taps and i with i · stride + tap - padding = t of W[tap] · x[i]: every
//   stride-th
//               row is an ordinary convolution with its own taps
//
// Runs on all threads; scratch (kernels/scratch.h): a panel of packed weights a thread, or, where they are
// few, all of them and a piece of the input.  Results depend on neither threads nor pieces.

#include "kernels/tap_panels.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace sluice::kernels {

struct LineConv {
  TapWeights weights;           // weights.transposed says which convolution
  const float* bias = nullptr;  // [out]
  std::int64_t dilation = 1;    // of an ordinary one
  std::int64_t stride = 1;      // of a transposed one
  std::int64_t padding = 0;
};

// Rows that y has.
std::int64_t line_rows(const LineConv& conv, std::int64_t rows);

struct LineReach {
  std::int64_t before = 0, behind = 0;
};
// Rows in front of the first one and behind the last one that the taps look at.
LineReach line_reach(const LineConv& conv);

struct LineInput {
  std::int64_t rows = 0;
  // [rows, in] with as many rows of zeros around as line_reach() says.
  const float* x = nullptr;
  std::int64_t stride = 0;  // values from a row to the next; 0: in
};

// Writes rows [begin, end) of an input that does not exist as a whole; called by several threads at once, for
// some rows more than once.
using FillRows = std::function<void(std::int64_t begin, std::int64_t end, float* to)>;

struct LineResult {
  float* y = nullptr;
  std::int64_t stride = 0;     // values from a row to the next; 0: out
  const float* added[2] = {};  // nullptr: nothing; laid out as y, may be y
  float scale = 1;
};

void conv_line(const LineConv& conv, const LineInput& input, const LineResult& result);

// Whether the weights are few enough to stay in a cache beside pieces of the input: then the input may be
// filled piece by piece.  Otherwise it would be filled once for each panel.
bool takes_pieces(const LineConv& conv);
void conv_line(const LineConv& conv, std::int64_t rows, const FillRows& fill, const LineResult& result);

// Bytes of scratch of the calls above, at most.
std::int64_t line_scratch(const LineConv& conv, std::int64_t threads);

// Of the rows of y, those at first + i · stride; y[first + i · stride] = Σ W[taps[k]] · x[i + rows[k]].
struct LinePhase {
  std::int64_t first = 0;
  std::vector<std::int64_t> taps, rows;
};
std::vector<LinePhase> line_phases(const LineConv& conv);
// Rows before and behind row i that y[first + i · stride] looks at.
LineReach seen_rows(const std::vector<LinePhase>& phases);

namespace reference {
// The plain twin: value by value.
void conv_line(const LineConv& conv, const LineInput& input, const LineResult& result);
}  // namespace reference

}  // namespace sluice::kernels
