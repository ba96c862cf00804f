#include "kernels/entry_rows.h"

#include <algorithm>
#include <cmath>

namespace sluice::kernels {
namespace {

// What one row is multiplied with before it rotates: one where there is no norm.
struct Scale {
  float factor;
  const float* weight;

  SLUICE_INLINE void apply(std::int64_t at, std::int64_t count, Lanes& x) const {
    if (!weight) return;
    Lanes w;
    load_up_to(weight + at, count, w);
    x *= w * factor;
  }
};

template <typename T>
SLUICE_INLINE void weigh_row(const T* from, std::int64_t dim, const Scale& scale, T* to) {
  for (std::int64_t i = 0; i < dim; i += kLanes) {
    Lanes x;
    load_up_to(from + i, dim - i, x);
    scale.apply(i, dim - i, x);
    store_up_to(x, dim - i, to + i);
  }
}

template <typename T>
SLUICE_INLINE void rotate_row(const T* from, std::int64_t half, const Scale& scale, const float* cosines,
                              const float* sines, T* to) {
  for (std::int64_t i = 0; i < half; i += kLanes) {
    Lanes a, b, cos, sin;
    load_up_to(from + i, half - i, a);
    load_up_to(from + half + i, half - i, b);
    scale.apply(i, half - i, a);
    scale.apply(half + i, half - i, b);
    load_up_to(cosines + i, half - i, cos);
    load_up_to(sines + i, half - i, sin);
    store_up_to(a * cos - b * sin, half - i, to + i);
    store_up_to(b * cos + a * sin, half - i, to + half + i);
  }
}

template <typename T>
SLUICE_INLINE void enter(const EntryRows<T>& x, T* to, std::int64_t to_stride, std::int64_t depth) {
  for (std::int64_t row = 0; row < x.rows; ++row) {
    const T* from = x.from + row * x.stride;
    T* values = to + row * to_stride;
    const Scale scale{x.factors ? x.factors[row] : 1, x.factors ? x.weight : nullptr};
    if (x.cos) {
      rotate_row(from, x.dim / 2, scale, x.cos + row * x.angle_stride, x.sin + row * x.angle_stride, values);
    } else if (x.factors) {
      weigh_row(from, x.dim, scale, values);
    } else if (values != from) {
      std::copy_n(from, x.dim, values);
    }
    std::fill(values + x.dim, values + depth, T{});
  }
}

template <typename T>
SLUICE_INLINE float inverse_rms_of(const EntryRow<T>& row, float eps) {
  Lanes sums[4] = {};
  for (std::int64_t head = 0; head < row.heads; ++head) {
    const T* from = row.from + head * row.head_stride;
    for (std::int64_t i = 0; i < row.dim; i += 4 * kLanes) {
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < 4; ++v) {
        const std::int64_t at = i + v * kLanes;
        if (at >= row.dim) break;
        Lanes x;
        load_up_to(from + at, row.dim - at, x);
        sums[v] += x * x;
      }
    }
  }
  const float total = sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
  return 1 / std::sqrt(total / static_cast<float>(row.heads * row.dim) + eps);
}

SLUICE_INLINE void enter_f32_body(const EntryRows<float>& x, float* to, std::int64_t to_stride,
                                  std::int64_t depth) {
  enter(x, to, to_stride, depth);
}
SLUICE_INLINE void enter_bf16_body(const EntryRows<Bf16>& x, Bf16* to, std::int64_t to_stride,
                                   std::int64_t depth) {
  enter(x, to, to_stride, depth);
}
SLUICE_INLINE float rms_f32_body(const EntryRow<float>& row, float eps) {
  return inverse_rms_of(row, eps);
}
SLUICE_INLINE float rms_bf16_body(const EntryRow<Bf16>& row, float eps) {
  return inverse_rms_of(row, eps);
}

SLUICE_COMPILE(void, enter_f32,
               (const EntryRows<float>& x, float* to, std::int64_t to_stride, std::int64_t depth),
               (x, to, to_stride, depth))
SLUICE_COMPILE(void, enter_bf16,
               (const EntryRows<Bf16>& x, Bf16* to, std::int64_t to_stride, std::int64_t depth),
               (x, to, to_stride, depth))
SLUICE_COMPILE(float, rms_f32, (const EntryRow<float>& row, float eps), (row, eps))
SLUICE_COMPILE(float, rms_bf16, (const EntryRow<Bf16>& row, float eps), (row, eps))

}  // namespace

void enter_rows(const EntryRows<float>& rows, float* to, std::int64_t to_stride, std::int64_t depth) {
  best_of(k_enter_f32)(rows, to, to_stride, depth);
}
void enter_rows(const EntryRows<Bf16>& rows, Bf16* to, std::int64_t to_stride, std::int64_t depth) {
  best_of(k_enter_bf16)(rows, to, to_stride, depth);
}

float inverse_rms(const EntryRow<float>& row, float eps) {
  return best_of(k_rms_f32)(row, eps);
}
float inverse_rms(const EntryRow<Bf16>& row, float eps) {
  return best_of(k_rms_bf16)(row, eps);
}

}  // namespace sluice::kernels
