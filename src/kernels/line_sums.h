#pragma once
// Where the sums of a convolution's rows begin and where they end.

#include <cstdint>

namespace sluice::kernels {

struct LineSums {  // of some rows and up to kPanelColumns of their columns
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;      // values from a row of what is added to the next
  const float* bias = nullptr;  // [columns]; nullptr: none
  const float* added[2] = {};   // nullptr: nothing
  float scale = 1;
};

// sums = bias + what is added, which may be where the sums are.  sums_stride: values from a row to the next.
void begin_sums(const LineSums& of, float* sums, std::int64_t sums_stride);
void scale_sums(const LineSums& of, float* sums, std::int64_t sums_stride);
void copy_sums(const LineSums& of, const float* from, std::int64_t from_stride, float* to,
               std::int64_t to_stride);

}  // namespace sluice::kernels
