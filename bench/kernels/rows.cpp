// Passes over rows of the published width at 1024 tokens, as a share of what copying memory reaches.

#include "peak.h"

#include "kernels/norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kTokens = 1024, kWidth = 4096;

void measure_norm(benchmark::State& state, at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({1, kTokens, kWidth}).to(dtype);
  const at::Tensor scale = at::randn({1, 1, kWidth}).to(dtype), shift = at::randn({1, 1, kWidth}).to(dtype);
  for (auto _ : state) benchmark::DoNotOptimize(rms_norm_modulated(x, 1e-6, scale, shift));
  bench::count_work(state, 2.0 * static_cast<double>(x.nbytes()), bench::Limit::copy, 1);
}

}  // namespace
}  // namespace sluice::kernels

int main(int argc, char** argv) {
  at::set_num_threads(1);
  using sluice::kernels::measure_norm;
  benchmark::RegisterBenchmark("norm_modulated/f32", measure_norm, at::kFloat);
  benchmark::RegisterBenchmark("norm_modulated/bf16", measure_norm, at::kBFloat16);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
