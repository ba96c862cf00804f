#include "kernels/line_sums.h"

#include "kernels/lanes.h"
#include "kernels/micro_product.h"

#include <algorithm>

namespace sluice::kernels {
namespace {

SLUICE_INLINE void load_columns(const float* from, std::int64_t count, Lanes& to) {
  count < kLanes ? load_part(from, count, to) : load(from, to);
}

SLUICE_INLINE void begin_sums_body(const LineSums& of, float* sums) {
  for (std::int64_t column = 0; column < of.columns; column += kLanes) {
    const std::int64_t count = std::min(kLanes, of.columns - column);
    Lanes bias = {};
    if (of.bias) load_columns(of.bias + column, count, bias);
    for (std::int64_t row = 0; row < of.rows; ++row) {
      Lanes sum = bias;
      for (const float* added : of.added) {
        if (!added) continue;
        Lanes x;
        load_columns(added + row * of.stride + column, count, x);
        sum += x;
      }
      store(sum, sums + row * kPanelColumns + column);
    }
  }
}

SLUICE_INLINE void end_sums_body(const LineSums& of, const float* sums, float* y) {
  for (std::int64_t column = 0; column < of.columns; column += kLanes) {
    const std::int64_t count = std::min(kLanes, of.columns - column);
    for (std::int64_t row = 0; row < of.rows; ++row) {
      Lanes sum;
      load(sums + row * kPanelColumns + column, sum);
      sum *= of.scale;
      float* to = y + row * of.stride + column;
      count < kLanes ? store_part(sum, count, to) : store(sum, to);
    }
  }
}

SLUICE_COMPILE(void, begin_sums, (const LineSums& of, float* sums), (of, sums))
SLUICE_COMPILE(void, end_sums, (const LineSums& of, const float* sums, float* y), (of, sums, y))

}  // namespace

void begin_sums(const LineSums& of, float* sums) {
  best_of(k_begin_sums)(of, sums);
}

void end_sums(const LineSums& of, const float* sums, float* y) {
  best_of(k_end_sums)(of, sums, y);
}

}  // namespace sluice::kernels
