// Attention of the published heads: GFLOP/s of ours and of LibTorch's scaled_dot_product_attention, on one
// thread (its processor seconds: other work on the machine hardly shows) and on all.

#include "peak.h"

#include "kernels/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kDim = 128;

enum class Arm { ours, prepared, libtorch };
constexpr const char* kNames[] = {"ours", "ours with norm and rope", "libtorch"};

struct Case {
  at::ScalarType dtype;
  std::int64_t tokens, heads;
  int threads;
};

at::Tensor random_heads(const Case& c) {  // as linear layers leave them
  return at::randn({1, c.tokens, c.heads * kDim}).to(c.dtype).unflatten(2, {c.heads, kDim}).transpose(1, 2);
}

AttentionEntry random_entry(const Case& c) {
  return {.norm = at::rand({c.heads * kDim}),
          .eps = 1e-6,
          .cos = at::rand({1, c.heads, c.tokens, kDim / 2}),
          .sin = at::rand({1, c.heads, c.tokens, kDim / 2})};
}

void measure(benchmark::State& state, Case c, Arm arm) {
  const at::NoGradGuard no_grad;
  at::set_num_threads(c.threads);
  at::manual_seed(1);
  const at::Tensor q = random_heads(c), k = random_heads(c), v = random_heads(c);
  Workspace workspace;
  AttentionOptions options{.out = at::empty({1, c.tokens, c.heads * kDim}, q.options()),
                           .workspace = &workspace};
  if (arm == Arm::prepared) options.queries = random_entry(c), options.keys = random_entry(c);
  auto run = [&] {
    if (arm == Arm::libtorch) {
      benchmark::DoNotOptimize(at::scaled_dot_product_attention(q, k, v));
    } else {
      benchmark::DoNotOptimize(attention(q, k, v, options));
    }
  };
  if (c.tokens < 4096) run();  // pages and caches
  for (auto _ : state) run();
  const auto tokens = static_cast<double>(c.tokens);
  const double flop = 4.0 * tokens * tokens * static_cast<double>(c.heads * kDim);
  bench::count_work(state, flop, c.dtype == at::kFloat ? bench::Limit::f32 : bench::Limit::bf16, c.threads);
}

void add_arms(const Case& c) {
  for (const Arm arm : {Arm::libtorch, Arm::ours, Arm::prepared}) {
    const std::string name = fmt::format("attention/{}/{} tokens, {} heads/{} thread{}/{}",
                                         c.dtype == at::kFloat ? "f32" : "bf16", c.tokens, c.heads, c.threads,
                                         c.threads == 1 ? "" : "s", kNames[static_cast<std::size_t>(arm)]);
    auto* added =
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { measure(state, c, arm); });
    added->Iterations(c.tokens < 4096 ? 5 : 1)->Unit(benchmark::kMillisecond);
    if (c.threads > 1) added->UseRealTime();
  }
}

}  // namespace
}  // namespace sluice::kernels

int main(int argc, char** argv) {
  using sluice::kernels::add_arms;
  const int all = at::get_num_threads();
  for (const auto dtype : {at::kBFloat16, at::kFloat}) {
    for (int threads = 1; threads <= all; threads += std::max(all - 1, 1)) {
      add_arms({dtype, 1024, 32, threads});
      add_arms({dtype, 14000, 4, threads});
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
