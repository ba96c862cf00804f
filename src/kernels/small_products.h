#pragma once
// Whether this processor has the instructions of oneDNN's small blocked products
// (at::native::cpublas::brgemm) in a dtype; elsewhere they would be emulated.

#include <ATen/core/ScalarType.h>

#include <cstdint>

namespace sluice::kernels {

// `depth`: the length of the sums.
inline bool has_small_products(at::ScalarType dtype, std::int64_t depth) {
#if defined(__x86_64__)
  if (dtype == at::kFloat) return __builtin_cpu_supports("avx512f");
  if (dtype == at::kBFloat16) return __builtin_cpu_supports("avx512bf16") && depth % 2 == 0;
#endif
  return false;
}

}  // namespace sluice::kernels
