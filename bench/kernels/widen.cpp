// Widening weights, elements a second of one thread, beside a copy of as many bytes as are written.

#include "kernels/widen_values.h"

#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <vector>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kCount = 1 << 16;  // one tile of a product: it stays in the second-level cache

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(count);
  // No exponent of ones in any format, so that there are no infinities: their speed is not of interest.
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 0xbb);
  return bytes;
}

template <typename T>
void widen(benchmark::State& state, Stored format) {
  const std::vector<std::byte> values = random_bytes(4 * kCount);
  const std::vector<float> scales(kCount / 64, 0.03F);
  const StoredValues from{
      .format = format, .values = values.data(), .scales = reinterpret_cast<const std::byte*>(scales.data())};
  std::vector<T> to(kCount);
  for (auto _ : state) {
    widen_values(from, 0, kCount, to.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kCount);
}

void copy(benchmark::State& state, std::size_t size) {
  const std::vector<std::byte> from = random_bytes(size * kCount);
  std::vector<std::byte> to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), to.size());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kCount);
}

void to_bf16(benchmark::State& state, Stored format) {
  widen<Bf16>(state, format);
}
void to_f32(benchmark::State& state, Stored format) {
  widen<float>(state, format);
}

BENCHMARK_CAPTURE(to_bf16, fp8, Stored::fp8);
BENCHMARK_CAPTURE(to_bf16, nf4, Stored::nf4);
BENCHMARK_CAPTURE(to_bf16, f32, Stored::f32);
BENCHMARK_CAPTURE(to_bf16, f16, Stored::f16);
BENCHMARK_CAPTURE(copy, of_2_bytes, 2);
BENCHMARK_CAPTURE(to_f32, fp8, Stored::fp8);
BENCHMARK_CAPTURE(to_f32, nf4, Stored::nf4);
BENCHMARK_CAPTURE(to_f32, bf16, Stored::bf16);
BENCHMARK_CAPTURE(to_f32, f16, Stored::f16);
BENCHMARK_CAPTURE(copy, of_4_bytes, 4);

}  // namespace
}  // namespace sluice::kernels

BENCHMARK_MAIN();
