#include "kernels/softmax_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sluice::kernels {
namespace {

// GCC's and Clang's vectors: each target compiles them to the widest registers it has.
using Lanes = float __attribute__((vector_size(4 * kSoftmaxLanes)));
using Bits = std::uint32_t __attribute__((vector_size(4 * kSoftmaxLanes)));
using HalfBits = std::uint16_t __attribute__((vector_size(2 * kSoftmaxLanes)));

#define SLUICE_INLINE [[gnu::always_inline]] inline

SLUICE_INLINE void load(const float* from, Lanes& to) {
  std::memcpy(&to, from, sizeof to);
}
SLUICE_INLINE void store(const Lanes& from, float* to) {
  std::memcpy(to, &from, sizeof from);
}

// Round to nearest even, values finite.
SLUICE_INLINE std::uint16_t bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
SLUICE_INLINE void store_bf16(const Lanes& from, std::uint16_t* to) {
  const Bits bits = reinterpret_cast<Bits>(from);
  const HalfBits half = __builtin_convertvector((bits + 0x7fff + ((bits >> 16) & 1)) >> 16, HalfBits);
  std::memcpy(to, &half, sizeof half);
}

// x <- exp(x) for x <= 0, NaN stays: 2^n · e^r with n = round(x / ln 2), e^r by a polynomial of degree 6 that
// is exact to 2 units in the last place (Cephes' expf).  Below the smallest normal number: 0.
SLUICE_INLINE void exp_in_place(Lanes& x) {
  constexpr float kLowest = -87.0F;
  constexpr float kRound = 12582912.0F;  // 1.5 · 2^23: adding it leaves an integer in the low bits
  const Lanes shifted = x * 1.44269504F + kRound;
  const Lanes n = shifted - kRound;
  const Lanes r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  Lanes p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const Bits power = (reinterpret_cast<Bits>(shifted) + 127) << 23;
  const Lanes zero = {};
  x = x < kLowest ? zero : p * reinterpret_cast<Lanes>(power);
}

SLUICE_INLINE float largest(const Lanes& x) {
  float result = x[0];
  for (std::int64_t i = 1; i < kSoftmaxLanes; ++i) result = std::max(result, x[i]);
  return result;
}
SLUICE_INLINE float total(const Lanes& x) {
  float result = 0;
  for (std::int64_t i = 0; i < kSoftmaxLanes; ++i) result += x[i];
  return result;
}

SLUICE_INLINE float scale_and_find_max(float* scores, std::int64_t padded, float scale, const float* bias,
                                       float max) {
  Lanes top = Lanes{} + max;
  for (std::int64_t i = 0; i < padded; i += kSoftmaxLanes) {
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
  return largest(top);
}

SLUICE_INLINE float softmax_row_body(float* scores, std::int64_t columns, float scale, const float* bias,
                                     SoftmaxState& state, std::uint16_t* to_bf16) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const std::int64_t padded = (columns + kSoftmaxLanes - 1) / kSoftmaxLanes * kSoftmaxLanes;
  for (std::int64_t i = columns; i < padded; ++i) scores[i] = kNever;
  const float max = scale_and_find_max(scores, padded, scale, bias, state.max);
  const float base = max == kNever ? 0 : max;  // -inf - -inf would be NaN

  Lanes sum = {};
  for (std::int64_t i = 0; i < padded; i += kSoftmaxLanes) {
    Lanes x;
    load(scores + i, x);
    x -= base;
    exp_in_place(x);
    sum += x;
    if (to_bf16) {
      store_bf16(x, to_bf16 + i);
    } else {
      store(x, scores + i);
    }
  }
  Lanes change = Lanes{} + (state.max - base);
  exp_in_place(change);
  const float factor = change[0];
  state.sum = state.sum * factor + total(sum);
  state.max = max;
  return factor;
}

SLUICE_INLINE void scale_row_body(const float* row, std::int64_t length, float factor, float* to) {
  for (std::int64_t i = 0; i < length; ++i) to[i] = row[i] * factor;
}
SLUICE_INLINE void scale_row_body(const float* row, std::int64_t length, float factor, std::uint16_t* to) {
  std::int64_t i = 0;
  for (; i + kSoftmaxLanes <= length; i += kSoftmaxLanes) {
    Lanes x;
    load(row + i, x);
    store_bf16(x * factor, to + i);
  }
  for (; i < length; ++i) to[i] = bf16(row[i] * factor);
}

// The same functions for one instruction set each.
struct Functions {
  float (*softmax)(float*, std::int64_t, float, const float*, SoftmaxState&, std::uint16_t*);
  void (*scale)(const float*, std::int64_t, float, float*);
  void (*scale_bf16)(const float*, std::int64_t, float, std::uint16_t*);
};

#define SLUICE_FUNCTIONS(name, target)                                                                    \
  target float softmax_##name(float* scores, std::int64_t columns, float scale, const float* bias,        \
                              SoftmaxState& state, std::uint16_t* to_bf16) {                              \
    return softmax_row_body(scores, columns, scale, bias, state, to_bf16);                                \
  }                                                                                                       \
  target void scale_##name(const float* row, std::int64_t length, float factor, float* to) {              \
    scale_row_body(row, length, factor, to);                                                              \
  }                                                                                                       \
  target void scale_bf16_##name(const float* row, std::int64_t length, float factor, std::uint16_t* to) { \
    scale_row_body(row, length, factor, to);                                                              \
  }                                                                                                       \
  constexpr Functions k_##name = {softmax_##name, scale_##name, scale_bf16_##name};

SLUICE_FUNCTIONS(baseline, )
#if defined(__x86_64__)
SLUICE_FUNCTIONS(avx2, [[gnu::target("avx2,fma")]])
SLUICE_FUNCTIONS(avx512, [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,fma")]])
#endif

Functions choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return k_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return k_avx2;
#endif
  return k_baseline;
}

const Functions& functions() {
  static const Functions chosen = choose();
  return chosen;
}

}  // namespace

float softmax_row(float* scores, std::int64_t columns, float scale, const float* bias, SoftmaxState& state,
                  std::uint16_t* to_bf16) {
  return functions().softmax(scores, columns, scale, bias, state, to_bf16);
}

void scale_row(const float* row, std::int64_t length, float factor, float* to) {
  functions().scale(row, length, factor, to);
}

void scale_row(const float* row, std::int64_t length, float factor, std::uint16_t* to_bf16) {
  functions().scale_bf16(row, length, factor, to_bf16);
}

}  // namespace sluice::kernels
