#include "peak.h"

#include "base/cpu_path.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kTurns = 500'000;

// The best of several rounds, in work a second.
double best_rate(double work, void (*run)()) {
  double best = 0;
  for (int round = 0; round < 9; ++round) {
    const auto begin = Clock::now();
    run();
    best = std::max(best, work / std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

// Sums that do not wait for each other, by name: an array would not stay in registers in every build.  As
// many as registers allow: twelve of bf16 pairs just wait for each other.
#define SLUICE_TWELVE(step) \
  step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10) step(11)
#define SLUICE_TWENTY_FOUR(step) \
  SLUICE_TWELVE(step)            \
  step(12) step(13) step(14) step(15) step(16) step(17) step(18) step(19) step(20) step(21) step(22) step(23)

#if defined(__x86_64__)
// Registers are named outright, and the program does nothing with them.
[[gnu::target("avx512f")]] void products_512() {
  for (std::int64_t turn = 0; turn < kTurns; ++turn) {
#define SLUICE_STEP(i) asm volatile("vfmadd231ps %%zmm30, %%zmm31, %%zmm" #i ::: "xmm" #i);
    SLUICE_TWENTY_FOUR(SLUICE_STEP)
#undef SLUICE_STEP
  }
}
[[gnu::target("avx512bf16")]] void pairs_512() {
  for (std::int64_t turn = 0; turn < kTurns; ++turn) {
#define SLUICE_STEP(i) asm volatile("vdpbf16ps %%zmm30, %%zmm31, %%zmm" #i ::: "xmm" #i);
    SLUICE_TWENTY_FOUR(SLUICE_STEP)
#undef SLUICE_STEP
  }
}
[[gnu::target("avx2,fma")]] void products_256() {
  for (std::int64_t turn = 0; turn < kTurns; ++turn) {
#define SLUICE_STEP(i) asm volatile("vfmadd231ps %%ymm14, %%ymm15, %%ymm" #i ::: "xmm" #i);
    SLUICE_TWELVE(SLUICE_STEP)
#undef SLUICE_STEP
  }
}
// A product and a sum: there is no instruction for both.
void products_128() {
  for (std::int64_t turn = 0; turn < kTurns; ++turn) {
#define SLUICE_STEP(i) asm volatile("mulps %%xmm14, %%xmm" #i "\n\taddps %%xmm15, %%xmm" #i ::: "xmm" #i);
    SLUICE_TWELVE(SLUICE_STEP)
#undef SLUICE_STEP
  }
}
#endif
#undef SLUICE_TWENTY_FOUR
#undef SLUICE_TWELVE

double product_rate(int lanes, int sums, void (*run)()) {
  return best_rate(2.0 * lanes * sums * kTurns / 1e9, run);
}

double measure_f32() {
#if defined(__x86_64__)
  if (cpu_path() >= CpuPath::avx512) return product_rate(16, 24, products_512);
  if (cpu_path() == CpuPath::avx2) return product_rate(8, 12, products_256);
  return product_rate(4, 12, products_128);
#else
  return 0;  // not known for this architecture: shares are left out
#endif
}

double measure_bf16() {
#if defined(__x86_64__)
  if (cpu_path() >= CpuPath::avx512_bf16) return product_rate(32, 24, pairs_512);
#endif
  return peak_f32();
}

constexpr std::size_t kBlock = std::size_t{256} << 20;

void copy_block() {
  static const std::vector<char> from(kBlock, 1);
  static std::vector<char> to(kBlock, 2);
  std::memcpy(to.data(), from.data(), kBlock);
}

double peak_of(Limit limit) {
  switch (limit) {
    case Limit::f32:
      return peak_f32();
    case Limit::bf16:
      return peak_bf16();
    case Limit::copy:
      return peak_copy();
  }
  return 0;
}

}  // namespace

double peak_f32() {
  static const double rate = measure_f32();
  return rate;
}

double peak_bf16() {
  static const double rate = measure_bf16();
  return rate;
}

double peak_copy() {
  static const double rate = best_rate(2.0 * kBlock / 1e9, copy_block);
  return rate;
}

void count_work(benchmark::State& state, double work_an_iteration, Limit limit, int threads) {
  using benchmark::Counter;
  const double giga = work_an_iteration / 1e9;
  state.counters[limit == Limit::copy ? "GB/s" : "GFLOP/s"] =
      Counter(giga, Counter::kIsIterationInvariantRate);
  if (const double peak = peak_of(limit) * threads; peak > 0)
    state.counters["of_peak"] = Counter(giga / peak, Counter::kIsIterationInvariantRate);
}

}  // namespace sluice::bench
