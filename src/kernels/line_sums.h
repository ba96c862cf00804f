#pragma once
// Where the sums of a convolution's rows begin and where they end.

#include <cstdint>

namespace sluice::kernels {

struct LineSums {  // of some rows and up to kPanelColumns of their columns
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;      // values from a row of y to the next; the same of what is added
  const float* bias = nullptr;  // [columns]; nullptr: none
  const float* added[2] = {};   // nullptr: nothing
  float scale = 1;
};

// sums[row · kPanelColumns + column] = bias + what is added, or with sums that are in y already: those.
void begin_sums(const LineSums& of, float* sums);
// y = scale · sums
void end_sums(const LineSums& of, const float* sums, float* y);

}  // namespace sluice::kernels
