#include "kernels/softmax_rows.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <numbers>
#include <type_traits>

namespace sluice::kernels {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// to = the larger; where x is NaN, what `to` was; where `to` is NaN, NaN.
template <typename Floats>
SLUICE_INLINE void keep_larger_of(const Floats& x, Floats& to) {
  to = x > to ? x : to;
}

// Rounded to nearest even, halves of neighbouring words beside each other; `sums` of what was rounded.
template <typename Words, typename Halves, typename Floats>
SLUICE_INLINE void store_rounded(const Floats& a, const Floats& b, Bf16* to, Floats* sums) {
  const Floats* values[] = {&a, &b};
#pragma GCC unroll 2
  for (std::int64_t v = 0; v < 2; ++v) {
    const Words bits = reinterpret_cast<const Words&>(*values[v]);
    const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const Halves halves = __builtin_convertvector(rounded, Halves);
    std::memcpy(to + v * sizeof(Halves) / sizeof(Bf16), &halves, sizeof halves);
    sums[v] += reinterpret_cast<Floats>(rounded << 16);
  }
}

template <typename Floats>
SLUICE_INLINE void store_exact(const Floats& a, const Floats& b, float* to, Floats* sums) {
  std::memcpy(to, &a, sizeof a);
  std::memcpy(to + sizeof a / 4, &b, sizeof b);
  sums[0] += a;
  sums[1] += b;
}

}  // namespace

// Named namespaces: functions of an anonymous one would be the same function for all instruction sets.
namespace scalar {
constexpr std::int64_t kWidth = 4;
using Floats = float __attribute__((vector_size(4 * kWidth)));
using Words = std::uint32_t __attribute__((vector_size(4 * kWidth)));
using Halves = std::uint16_t __attribute__((vector_size(2 * kWidth)));
SLUICE_INLINE void keep_larger(const Floats& x, Floats& to) {
  keep_larger_of(x, to);
}
SLUICE_INLINE void store_weights(const Floats& a, const Floats& b, Bf16* to, Floats* sums) {
  store_rounded<Words, Halves>(a, b, to, sums);
}
SLUICE_INLINE void store_weights(const Floats& a, const Floats& b, float* to, Floats* sums) {
  store_exact(a, b, to, sums);
}
#include "kernels/softmax_rows.inc"
}  // namespace scalar

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr std::int64_t kWidth = 8;
using Floats = float __attribute__((vector_size(4 * kWidth)));
using Words = std::uint32_t __attribute__((vector_size(4 * kWidth)));
using Halves = std::uint16_t __attribute__((vector_size(2 * kWidth)));
SLUICE_INLINE void keep_larger(const Floats& x, Floats& to) {
  keep_larger_of(x, to);
}
SLUICE_INLINE void store_weights(const Floats& a, const Floats& b, Bf16* to, Floats* sums) {
  store_rounded<Words, Halves>(a, b, to, sums);
}
SLUICE_INLINE void store_weights(const Floats& a, const Floats& b, float* to, Floats* sums) {
  store_exact(a, b, to, sums);
}
#include "kernels/softmax_rows.inc"
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma")
namespace avx512 {
constexpr std::int64_t kWidth = 16;
using Floats = float __attribute__((vector_size(4 * kWidth)));
using Words = std::uint32_t __attribute__((vector_size(4 * kWidth)));
using Halves = std::uint16_t __attribute__((vector_size(2 * kWidth)));
// Of the comparison GCC would make two instructions.  With a mask of all lanes: about the intrinsic without
// one GCC 12 warns.
SLUICE_INLINE void keep_larger(const Floats& x, Floats& to) {
  to = reinterpret_cast<Floats>(
      _mm512_maskz_max_ps(0xffff, reinterpret_cast<__m512>(x), reinterpret_cast<__m512>(to)));
}
SLUICE_INLINE void store_weights(const Floats& a, const Floats& b, Bf16* to, Floats* sums) {
  store_rounded<Words, Halves>(a, b, to, sums);
}
SLUICE_INLINE void store_weights(const Floats& a, const Floats& b, float* to, Floats* sums) {
  store_exact(a, b, to, sums);
}
#include "kernels/softmax_rows.inc"
}  // namespace avx512
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma")
namespace avx512_bf16 {
constexpr std::int64_t kWidth = 16;
using Floats = float __attribute__((vector_size(4 * kWidth)));
using Words = std::uint32_t __attribute__((vector_size(4 * kWidth)));
SLUICE_INLINE void keep_larger(const Floats& x, Floats& to) {
  to = reinterpret_cast<Floats>(
      _mm512_maskz_max_ps(0xffff, reinterpret_cast<__m512>(x), reinterpret_cast<__m512>(to)));
}
SLUICE_INLINE void store_weights(const Floats& a, const Floats& b, Bf16* to, Floats* sums) {
  const __m512bh pairs = _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(a));
  std::memcpy(to, &pairs, sizeof pairs);
  const __m512bh ones = reinterpret_cast<__m512bh>(Words{} + 0x3f803f80);
  sums[0] = reinterpret_cast<Floats>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sums[0]), pairs, ones));
}
SLUICE_INLINE void store_weights(const Floats& a, const Floats& b, float* to, Floats* sums) {
  store_exact(a, b, to, sums);
}
#include "kernels/softmax_rows.inc"
}  // namespace avx512_bf16
#pragma GCC pop_options
#endif

namespace {

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

SLUICE_INLINE void add_body(const float* row, std::int64_t length, float* to) {
  for (std::int64_t i = 0; i < length; ++i) to[i] += row[i];
}

SLUICE_COMPILE(void, add, (const float* row, std::int64_t length, float* to), (row, length, to))
SLUICE_COMPILE(void, scale_to_f32, (const float* row, std::int64_t length, float factor, float* to),
               (row, length, factor, to))
SLUICE_COMPILE(void, scale_to_bf16, (const float* row, std::int64_t length, float factor, Bf16* to),
               (row, length, factor, to))

}  // namespace

void softmax_to_f32(const SoftmaxBlock& block) {
#if defined(__x86_64__)
  if (cpu_path() >= CpuPath::avx512) return avx512::softmax_to_f32(block);
  if (cpu_path() == CpuPath::avx2) return avx2::softmax_to_f32(block);
#endif
  scalar::softmax_to_f32(block);
}

void softmax_to_bf16(const SoftmaxBlock& block) {
#if defined(__x86_64__)
  if (cpu_path() >= CpuPath::avx512_bf16) return avx512_bf16::softmax_to_bf16(block);
  if (cpu_path() == CpuPath::avx512) return avx512::softmax_to_bf16(block);
  if (cpu_path() == CpuPath::avx2) return avx2::softmax_to_bf16(block);
#endif
  scalar::softmax_to_bf16(block);
}

void add_row(const float* row, std::int64_t length, float* to) {
  best_of(k_add)(row, length, to);
}

void scale_row(const float* row, std::int64_t length, float factor, float* to) {
  best_of(k_scale_to_f32)(row, length, factor, to);
}

void scale_row(const float* row, std::int64_t length, float factor, Bf16* to) {
  best_of(k_scale_to_bf16)(row, length, factor, to);
}

}  // namespace sluice::kernels
