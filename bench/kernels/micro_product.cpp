// The register tile of all products, on one thread: operands in the caches, at the depths that layers have.

#include "peak.h"

#include "kernels/micro_product.h"

#include <fmt/format.h>

#include <string>
#include <type_traits>
#include <vector>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kRows = 240;

template <typename T>
void measure(benchmark::State& state, std::int64_t depth) {
  const std::vector<T> a(static_cast<std::size_t>(kRows * depth));
  const std::vector<T> b(static_cast<std::size_t>(depth * kPanelColumns));
  std::vector<float> c(kRows * kPanelColumns);
  const MicroProduct<T> product{
      .a = a.data(), .a_stride = depth, .depth = depth, .b = b.data(), .c = c.data()};
  for (auto _ : state) {
    multiply(product, kRows);
    benchmark::ClobberMemory();
  }
  bench::count_work(state, 2.0 * kRows * static_cast<double>(depth) * kPanelColumns,
                    std::is_same_v<T, float> ? bench::Limit::f32 : bench::Limit::bf16, 1);
}

}  // namespace
}  // namespace sluice::kernels

int main(int argc, char** argv) {
  using namespace sluice::kernels;
  for (const std::int64_t depth : {128, 512, 1024, 4096}) {
    benchmark::RegisterBenchmark(fmt::format("micro_product/f32/{}", depth).c_str(), measure<float>, depth);
    benchmark::RegisterBenchmark(fmt::format("micro_product/bf16/{}", depth).c_str(), measure<Bf16>, depth);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
