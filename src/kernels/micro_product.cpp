#include "kernels/micro_product.h"

#include "base/cpu_path.h"
#include "kernels/plain_value.h"

#include <ATen/native/CPUBlas.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <type_traits>
#include <utility>

namespace sluice::kernels {
namespace {

// A pair of bf16 in each word: low half first.
template <typename Words, typename Floats>
SLUICE_INLINE void multiply_pair_as_floats(const Words& a, const Words& b, Floats& sum) {
  constexpr std::uint32_t kUpper = 0xffff0000;
  sum += reinterpret_cast<Floats>(a << 16) * reinterpret_cast<Floats>(b << 16);
  sum += reinterpret_cast<Floats>(a & kUpper) * reinterpret_cast<Floats>(b & kUpper);
}

}  // namespace

// Named namespaces: functions of an anonymous one would be the same function for all instruction sets.
namespace scalar {
constexpr std::int64_t kWidth = 4, kMostRows = 4, kVectors = 2;
template <typename Words, typename Floats>
SLUICE_INLINE void multiply_pair(const Words& a, const Words& b, Floats& sum) {
  multiply_pair_as_floats(a, b, sum);
}
#include "kernels/micro_product.inc"
}  // namespace scalar

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr std::int64_t kWidth = 8, kMostRows = 6, kVectors = 2;
template <typename Words, typename Floats>
SLUICE_INLINE void multiply_pair(const Words& a, const Words& b, Floats& sum) {
  multiply_pair_as_floats(a, b, sum);
}
#include "kernels/micro_product.inc"
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma")
namespace avx512 {
constexpr std::int64_t kWidth = 16, kMostRows = 12, kVectors = 2;
template <typename Words, typename Floats>
SLUICE_INLINE void multiply_pair(const Words& a, const Words& b, Floats& sum) {
  multiply_pair_as_floats(a, b, sum);
}
#include "kernels/micro_product.inc"
// A last panel of sixteen columns.
namespace narrow {
constexpr std::int64_t kVectors = 1;
#include "kernels/micro_product.inc"
}  // namespace narrow
}  // namespace avx512
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma")
namespace avx512_bf16 {
constexpr std::int64_t kWidth = 16, kMostRows = 12, kVectors = 2;
template <typename Words, typename Floats>
SLUICE_INLINE void multiply_pair(const Words& a, const Words& b, Floats& sum) {
  sum = reinterpret_cast<Floats>(_mm512_dpbf16_ps(
      reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b)));
}
#include "kernels/micro_product.inc"
namespace narrow {
constexpr std::int64_t kVectors = 1;
#include "kernels/micro_product.inc"
}  // namespace narrow
}  // namespace avx512_bf16
#pragma GCC pop_options
#endif
namespace onednn {

void multiply(const MicroProduct<Bf16>& x, std::int64_t rows) {
  const Bf16* b = x.b;
  for (std::int64_t segment = 0; segment < x.segment_count; ++segment) {
    const Bf16* a = x.a + (x.segments ? x.segments[segment] : 0);
    at::native::cpublas::brgemm(rows, x.columns, x.depth, x.a_stride, x.columns, x.c_stride,
                                x.add || segment > 0, reinterpret_cast<const at::BFloat16*>(a),
                                reinterpret_cast<const at::BFloat16*>(b), x.c, /*is_vnni=*/true);
    b += x.depth * x.columns;
  }
}

}  // namespace onednn

void multiply(const MicroProduct<float>& product, std::int64_t rows) {
  switch (cpu_path()) {
#if defined(__x86_64__)
    case CpuPath::amx:
    case CpuPath::avx512_bf16:
    case CpuPath::avx512:
      return product.columns == kPanelColumns ? avx512::multiply(product, rows)
                                              : avx512::narrow::multiply(product, rows);
    case CpuPath::avx2:
      return avx2::multiply(product, rows);
#endif
    default:
      return scalar::multiply(product, rows);
  }
}

void multiply(const MicroProduct<Bf16>& product, std::int64_t rows) {
  switch (cpu_path()) {
#if defined(__x86_64__)
    case CpuPath::amx:
      return onednn::multiply(product, rows);
    case CpuPath::avx512_bf16:
      return product.columns == kPanelColumns ? avx512_bf16::multiply(product, rows)
                                              : avx512_bf16::narrow::multiply(product, rows);
    case CpuPath::avx512:
      return product.columns == kPanelColumns ? avx512::multiply(product, rows)
                                              : avx512::narrow::multiply(product, rows);
    case CpuPath::avx2:
      return avx2::multiply(product, rows);
#endif
    default:
      return scalar::multiply(product, rows);
  }
}

void end_products() {
  if (cpu_path() == CpuPath::amx) at::native::cpublas::brgemm_release(/*is_vnni=*/true);
}

namespace reference {
namespace {

template <typename T>
void multiply_each(const MicroProduct<T>& x, std::int64_t rows) {
  constexpr std::int64_t kWord = kWordValues<T>;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < x.columns; ++column) {
      float& c = x.c[row * x.c_stride + column];
      float sum = x.add ? c : 0;
      for (std::int64_t segment = 0; segment < x.segment_count; ++segment) {
        const T* a = x.a + (x.segments ? x.segments[segment] : 0) + row * x.a_stride;
        const T* b = x.b + segment * x.depth * x.columns;
        for (std::int64_t k = 0; k < x.depth; ++k)
          sum += plain_value(a[k]) * plain_value(b[(k / kWord * x.columns + column) * kWord + k % kWord]);
      }
      c = sum;
    }
  }
}

}  // namespace

void multiply(const MicroProduct<float>& product, std::int64_t rows) {
  multiply_each(product, rows);
}
void multiply(const MicroProduct<Bf16>& product, std::int64_t rows) {
  multiply_each(product, rows);
}

}  // namespace reference
}  // namespace sluice::kernels
