#pragma once
// Sixteen floats at once, in plain code: GCC's and Clang's vectors, which each instruction set compiles to
// the widest registers it has, and a choice among compilations of one function at each call.

#include "base/cpu_path.h"

#include <cstdint>
#include <cstring>

// Bodies of functions that are compiled for several instruction sets must be inlined into each.
#define SLUICE_INLINE [[gnu::always_inline]] inline

namespace sluice::kernels {

inline constexpr std::int64_t kLanes = 16;

using Lanes = float __attribute__((vector_size(4 * kLanes)));
using LaneBits = std::uint32_t __attribute__((vector_size(4 * kLanes)));
using LaneHalves = std::uint16_t __attribute__((vector_size(2 * kLanes)));

struct Bf16 {  // the upper half of a float's bits; layout of LibTorch's BFloat16
  std::uint16_t bits;
};

// References, not values: passing vectors by value depends on the instruction set.
SLUICE_INLINE void load(const float* from, Lanes& to) {
  std::memcpy(&to, from, sizeof to);
}
SLUICE_INLINE void load(const Bf16* from, Lanes& to) {
  LaneHalves halves;
  std::memcpy(&halves, from, sizeof halves);
  to = reinterpret_cast<Lanes>(__builtin_convertvector(halves, LaneBits) << 16);
}
SLUICE_INLINE void store(const Lanes& from, float* to) {
  std::memcpy(to, &from, sizeof from);
}
// Rounds to nearest even.  NaN stays NaN unless its payload is all ones, which no operation makes.
SLUICE_INLINE void store(const Lanes& from, Bf16* to) {
  const LaneBits bits = reinterpret_cast<LaneBits>(from);
  const LaneHalves halves = __builtin_convertvector((bits + 0x7fff + ((bits >> 16) & 1)) >> 16, LaneHalves);
  std::memcpy(to, &halves, sizeof halves);
}

// The first `count` of sixteen, the others zero or left alone: the end of a row.
template <typename T>
SLUICE_INLINE void load_part(const T* from, std::int64_t count, Lanes& to) {
  T whole[kLanes] = {};
  std::memcpy(whole, from, static_cast<std::size_t>(count) * sizeof(T));
  load(whole, to);
}
template <typename T>
SLUICE_INLINE void store_part(const Lanes& from, std::int64_t count, T* to) {
  T whole[kLanes];
  store(from, whole);
  std::memcpy(to, whole, static_cast<std::size_t>(count) * sizeof(T));
}

// All sixteen, or what is left of a row.
template <typename T>
SLUICE_INLINE void load_up_to(const T* from, std::int64_t count, Lanes& to) {
  if (count >= kLanes) {
    load(from, to);
  } else {
    load_part(from, count, to);
  }
}
template <typename T>
SLUICE_INLINE void store_up_to(const Lanes& from, std::int64_t count, T* to) {
  if (count >= kLanes) {
    store(from, to);
  } else {
    store_part(from, count, to);
  }
}

SLUICE_INLINE float sum_of(const Lanes& x) {
  float result = 0;
  for (std::int64_t i = 0; i < kLanes; ++i) result += x[i];
  return result;
}

// One function compiled for several instruction sets.
template <typename Function>
struct Compilations {
  Function* baseline;
  Function* avx2;
  Function* avx512;
};

template <typename Function>
Function* best_of(const Compilations<Function>& of) {
#if defined(__x86_64__)
  if (cpu_path() >= CpuPath::avx512) return of.avx512;
  if (cpu_path() == CpuPath::avx2) return of.avx2;
#endif
  return of.baseline;
}

// Defines k_<name>, the compilations of <name>_body.  A macro, because no template can carry a target.
#if defined(__x86_64__)
#define SLUICE_COMPILE(Result, name, parameters, arguments)                                   \
  Result name##_baseline parameters {                                                         \
    return name##_body arguments;                                                             \
  }                                                                                           \
  [[gnu::target("avx2,fma")]] Result name##_avx2 parameters {                                 \
    return name##_body arguments;                                                             \
  }                                                                                           \
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,fma")]] Result name##_avx512 parameters { \
    return name##_body arguments;                                                             \
  }                                                                                           \
  constexpr Compilations<Result parameters> k_##name = {name##_baseline, name##_avx2, name##_avx512};
#else
#define SLUICE_COMPILE(Result, name, parameters, arguments) \
  Result name##_baseline parameters {                       \
    return name##_body arguments;                           \
  }                                                         \
  constexpr Compilations<Result parameters> k_##name = {name##_baseline, name##_baseline, name##_baseline};
#endif

}  // namespace sluice::kernels
