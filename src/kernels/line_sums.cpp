#include "kernels/line_sums.h"

#include "kernels/lanes.h"
#include "kernels/micro_product.h"

#include <algorithm>

namespace sluice::kernels {
namespace {

SLUICE_INLINE void load_columns(const float* from, std::int64_t count, Lanes& to) {
  count < kLanes ? load_part(from, count, to) : load(from, to);
}
SLUICE_INLINE void store_columns(const Lanes& from, std::int64_t count, float* to) {
  count < kLanes ? store_part(from, count, to) : store(from, to);
}

SLUICE_INLINE void begin_columns(const LineSums& of, std::int64_t column, std::int64_t count, float* sums,
                                 std::int64_t sums_stride) {
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
    store_columns(sum, count, sums + row * sums_stride + column);
  }
}

SLUICE_INLINE void begin_sums_body(const LineSums& of, float* sums, std::int64_t sums_stride) {
  for (std::int64_t column = 0; column < of.columns; column += kLanes)
    begin_columns(of, column, std::min(kLanes, of.columns - column), sums, sums_stride);
}

SLUICE_COMPILE(void, begin_sums, (const LineSums& of, float* sums, std::int64_t sums_stride),
               (of, sums, sums_stride))

}  // namespace

void begin_sums(const LineSums& of, float* sums, std::int64_t sums_stride) {
  best_of(k_begin_sums)(of, sums, sums_stride);
}

void scale_sums(const LineSums& of, float* sums, std::int64_t sums_stride) {
  for (std::int64_t row = 0; row < of.rows; ++row)
    for (std::int64_t column = 0; column < of.columns; ++column) sums[row * sums_stride + column] *= of.scale;
}

void copy_sums(const LineSums& of, const float* from, std::int64_t from_stride, float* to,
               std::int64_t to_stride) {
  for (std::int64_t row = 0; row < of.rows; ++row)
    std::copy_n(from + row * from_stride, of.columns, to + row * to_stride);
}

}  // namespace sluice::kernels
