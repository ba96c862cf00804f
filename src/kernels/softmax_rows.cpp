#include "kernels/softmax_rows.h"

#include "kernels/lanes_exp.h"

#include <algorithm>

namespace sluice::kernels {
namespace {

SLUICE_INLINE float scale_and_find_max(float* scores, std::int64_t padded, float scale, const float* bias,
                                       float max) {
  Lanes top = Lanes{} + max;
  for (std::int64_t i = 0; i < padded; i += kLanes) {
    Lanes x, b;
    load(scores + i, x);
    x *= scale;
    if (bias) {
      load(bias + i, b);
      x += b;
    }
    store(x, scores + i);
    top = x > top ? x : top;
  }
  for (std::int64_t i = 0; i < kLanes; ++i) max = std::max(max, top[i]);
  return max;
}

SLUICE_INLINE float softmax_row_body(float* scores, std::int64_t columns, float scale, const float* bias,
                                     SoftmaxState& state, Bf16* halves) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const std::int64_t padded = (columns + kLanes - 1) / kLanes * kLanes;
  for (std::int64_t i = columns; i < padded; ++i) scores[i] = kNever;
  const float max = scale_and_find_max(scores, padded, scale, bias, state.max);
  const float base = max == kNever ? 0 : max;  // -inf - -inf would be NaN

  Lanes sum = {};
  for (std::int64_t i = 0; i < padded; i += kLanes) {
    Lanes x;
    load(scores + i, x);
    x -= base;
    exp_in_place(x);
    sum += x;
    if (halves) {
      store(x, halves + i);
    } else {
      store(x, scores + i);
    }
  }
  Lanes change = Lanes{} + (state.max - base);
  exp_in_place(change);
  const float factor = change[0];
  state.sum = state.sum * factor + sum_of(sum);
  state.max = max;
  return factor;
}

template <typename T>
SLUICE_INLINE void scale_row_of(const float* row, std::int64_t length, float factor, T* to) {
  Lanes x;
  std::int64_t i = 0;
  for (; i + kLanes <= length; i += kLanes) {
    load(row + i, x);
    store(x * factor, to + i);
  }
  if (i == length) return;
  load_part(row + i, length - i, x);
  store_part(x * factor, length - i, to + i);
}
SLUICE_INLINE void scale_to_f32_body(const float* row, std::int64_t length, float factor, float* to) {
  scale_row_of(row, length, factor, to);
}
SLUICE_INLINE void scale_to_bf16_body(const float* row, std::int64_t length, float factor, Bf16* to) {
  scale_row_of(row, length, factor, to);
}

SLUICE_COMPILE(float, softmax_row,
               (float* scores, std::int64_t columns, float scale, const float* bias, SoftmaxState& state,
                Bf16* halves),
               (scores, columns, scale, bias, state, halves))
SLUICE_COMPILE(void, scale_to_f32, (const float* row, std::int64_t length, float factor, float* to),
               (row, length, factor, to))
SLUICE_COMPILE(void, scale_to_bf16, (const float* row, std::int64_t length, float factor, Bf16* to),
               (row, length, factor, to))

}  // namespace

float softmax_row(float* scores, std::int64_t columns, float scale, const float* bias, SoftmaxState& state,
                  Bf16* halves) {
  return best_of(k_softmax_row)(scores, columns, scale, bias, state, halves);
}

void scale_row(const float* row, std::int64_t length, float factor, float* to) {
  best_of(k_scale_to_f32)(row, length, factor, to);
}

void scale_row(const float* row, std::int64_t length, float factor, Bf16* to) {
  best_of(k_scale_to_bf16)(row, length, factor, to);
}

}  // namespace sluice::kernels
