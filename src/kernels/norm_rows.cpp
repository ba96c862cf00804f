#include "kernels/norm_rows.h"

#include <cmath>

namespace sluice::kernels {
namespace {

// function(offset, count): all lanes of a row, the last ones fewer than kLanes.
template <typename Function>
SLUICE_INLINE void over_lanes(std::int64_t length, Function function) {
  std::int64_t i = 0;
  for (; i + kLanes <= length; i += kLanes) function(i, kLanes);
  if (i < length) function(i, length - i);
}

template <typename T>
SLUICE_INLINE void load_some(const T* from, std::int64_t count, Lanes& to) {
  if (count == kLanes) {
    load(from, to);
  } else {
    load_part(from, count, to);
  }
}
template <typename T>
SLUICE_INLINE void store_some(const Lanes& from, std::int64_t count, T* to) {
  if (count == kLanes) {
    store(from, to);
  } else {
    store_part(from, count, to);
  }
}

template <typename T>
SLUICE_INLINE float inverse_rms(const T* x, std::int64_t width, float eps) {
  Lanes squares = {};
  over_lanes(
      width, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        Lanes v;
        load_some(x + i, count, v);
        squares += v * v;
      });
  return 1 / std::sqrt(sum_of(squares) / static_cast<float>(width) + eps);
}

template <typename T>
SLUICE_INLINE float mean_of(const T* x, std::int64_t width) {
  Lanes sum = {};
  over_lanes(
      width, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        Lanes v;
        load_some(x + i, count, v);
        sum += v;
      });
  return sum_of(sum) / static_cast<float>(width);
}

// Of the distances from the mean: no difference of large numbers.
template <typename T>
SLUICE_INLINE float inverse_deviation(const T* x, std::int64_t width, float mean, float eps) {
  Lanes squares = {};
  over_lanes(
      width, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        Lanes v;
        load_some(x + i, count, v);
        v -= mean;
        if (count < kLanes) {  // lanes behind the end are no values
          for (std::int64_t lane = count; lane < kLanes; ++lane) v[lane] = 0;
        }
        squares += v * v;
      });
  return 1 / std::sqrt(sum_of(squares) / static_cast<float>(width) + eps);
}

template <typename T>
SLUICE_INLINE void modulate_row(const RowNorming& norming, const T* x, const T* scale, const T* shift,
                                T* to) {
  const std::int64_t width = norming.width;
  const float mean = norming.norm == RowNorm::layer ? mean_of(x, width) : 0;
  float factor = 1;
  if (norming.norm == RowNorm::rms) factor = inverse_rms(x, width, norming.eps);
  if (norming.norm == RowNorm::layer) factor = inverse_deviation(x, width, mean, norming.eps);
  over_lanes(
      width, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        Lanes v, part;
        load_some(x + i, count, v);
        v = (v - mean) * factor;
        if (scale) {
          load_some(scale + i, count, part);
          v *= part + 1.0F;
        }
        if (shift) {
          load_some(shift + i, count, part);
          v += part;
        }
        store_some(v, count, to + i);
      });
}

template <typename T>
SLUICE_INLINE void rotate_row(T* x, std::int64_t width, std::int64_t heads, float eps, const float* weight,
                              const RotationRow& rotation) {
  const float factor = inverse_rms(x, width, eps);
  const std::int64_t half = width / heads / 2;
  for (std::int64_t head = 0; head < heads; ++head) {
    T *first = x + 2 * head * half, *second = first + half;
    const float *first_weight = weight + 2 * head * half, *second_weight = first_weight + half;
    const float *cosines = rotation.cos + head * rotation.head_stride,
                *sines = rotation.sin + head * rotation.head_stride;
    over_lanes(
        half, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
          Lanes a, b, wa, wb, cos, sin;
          load_some(first + i, count, a);
          load_some(second + i, count, b);
          load_some(first_weight + i, count, wa);
          load_some(second_weight + i, count, wb);
          load_some(cosines + i, count, cos);
          load_some(sines + i, count, sin);
          a *= wa * factor;
          b *= wb * factor;
          store_some(a * cos - b * sin, count, first + i);
          store_some(b * cos + a * sin, count, second + i);
        });
  }
}

template <typename T>
SLUICE_INLINE void weigh_row(T* x, std::int64_t width, float eps, const float* weight) {
  const float factor = inverse_rms(x, width, eps);
  over_lanes(
      width, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        Lanes v, w;
        load_some(x + i, count, v);
        load_some(weight + i, count, w);
        store_some(v * factor * w, count, x + i);
      });
}

template <typename T>
SLUICE_INLINE void norm_rotate(T* x, std::int64_t width, std::int64_t heads, float eps, const float* weight,
                               const RotationRow& rotation) {
  if (rotation.cos) {
    rotate_row(x, width, heads, eps, weight, rotation);
  } else {
    weigh_row(x, width, eps, weight);
  }
}

SLUICE_INLINE void modulate_f32_body(const RowNorming& norming, const float* x, const float* scale,
                                     const float* shift, float* to) {
  modulate_row(norming, x, scale, shift, to);
}
SLUICE_INLINE void modulate_bf16_body(const RowNorming& norming, const Bf16* x, const Bf16* scale,
                                      const Bf16* shift, Bf16* to) {
  modulate_row(norming, x, scale, shift, to);
}
SLUICE_INLINE void rotate_f32_body(float* x, std::int64_t width, std::int64_t heads, float eps,
                                   const float* weight, const RotationRow& rotation) {
  norm_rotate(x, width, heads, eps, weight, rotation);
}
SLUICE_INLINE void rotate_bf16_body(Bf16* x, std::int64_t width, std::int64_t heads, float eps,
                                    const float* weight, const RotationRow& rotation) {
  norm_rotate(x, width, heads, eps, weight, rotation);
}

SLUICE_COMPILE(void, modulate_f32,
               (const RowNorming& norming, const float* x, const float* scale, const float* shift, float* to),
               (norming, x, scale, shift, to))
SLUICE_COMPILE(void, modulate_bf16,
               (const RowNorming& norming, const Bf16* x, const Bf16* scale, const Bf16* shift, Bf16* to),
               (norming, x, scale, shift, to))
SLUICE_COMPILE(void, rotate_f32,
               (float* x, std::int64_t width, std::int64_t heads, float eps, const float* weight,
                const RotationRow& rotation),
               (x, width, heads, eps, weight, rotation))
SLUICE_COMPILE(void, rotate_bf16,
               (Bf16 * x, std::int64_t width, std::int64_t heads, float eps, const float* weight,
                const RotationRow& rotation),
               (x, width, heads, eps, weight, rotation))

}  // namespace

template <>
void norm_modulate_row(const RowNorming& norming, const float* x, const float* scale, const float* shift,
                       float* to) {
  best_of(k_modulate_f32)(norming, x, scale, shift, to);
}
template <>
void norm_modulate_row(const RowNorming& norming, const Bf16* x, const Bf16* scale, const Bf16* shift,
                       Bf16* to) {
  best_of(k_modulate_bf16)(norming, x, scale, shift, to);
}
template <>
void norm_rotate_row(float* x, std::int64_t width, std::int64_t heads, float eps, const float* weight,
                     const RotationRow& rotation) {
  best_of(k_rotate_f32)(x, width, heads, eps, weight, rotation);
}
template <>
void norm_rotate_row(Bf16* x, std::int64_t width, std::int64_t heads, float eps, const float* weight,
                     const RotationRow& rotation) {
  best_of(k_rotate_bf16)(x, width, heads, eps, weight, rotation);
}

}  // namespace sluice::kernels
