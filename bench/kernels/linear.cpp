// Linear layers of the published width on one thread: GFLOP/s for every format of the weight and their share
// of what registers give, beside oneDNN's product with a weight that was packed before.  With few tokens the
// weight's bytes a second count.

#include "peak.h"

#include "kernels/linear.h"
#include "kernels/rows.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kTokens = 1024;

struct Layer {
  at::ScalarType dtype;  // that is computed with
  std::int64_t in, out;
  std::int64_t tokens = kTokens;
  std::int64_t rank = 0;  // of an adapter beside the weight
};

enum class Weight { prepacked, f32, bf16, fp8, nf4 };
constexpr const char* kNames[] = {"prepacked", "f32", "bf16", "fp8", "nf4"};

at::Tensor prepacked(const at::Tensor& weight) {
  using Reorder = at::Tensor(const at::Tensor&, std::optional<std::int64_t>);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_reorder_linear_weight", "").typed<Reorder>();
  return op.call(weight, kTokens);
}

at::Tensor onednn_linear(const at::Tensor& x, const at::Tensor& weight) {
  using Pointwise =
      at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, c10::string_view,
                 c10::List<std::optional<at::Scalar>>, std::optional<c10::string_view>);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_linear_pointwise", "").typed<Pointwise>();
  return op.call(x, weight, std::nullopt, "none", c10::List<std::optional<at::Scalar>>(), "");
}

Matrix random_matrix(Weight kind, std::int64_t rows, std::int64_t columns) {
  const std::int64_t count = rows * columns;
  if (kind == Weight::nf4)
    return {at::randint(0, 256, {count / 2}, at::kByte), at::rand({count / 64}) / 16, rows, columns};
  const at::Tensor values = at::randn({rows, columns}) / 64;
  if (kind == Weight::fp8) return {values.to(at::kFloat8_e4m3fn), at::full({}, 1.1F), rows, columns};
  return {kind == Weight::f32 ? values : values.to(at::kBFloat16)};
}

std::size_t bytes_of(const Matrix& weight) {
  return weight.values.nbytes() + (weight.scales.defined() ? weight.scales.nbytes() : 0);
}

// In turn over so many weights that few tokens find none of them in a cache.
void measure_ours(benchmark::State& state, Layer layer, Weight kind) {
  constexpr std::int64_t kManyTokens = 256, kWeights = 8;
  std::vector<Matrix> weights;
  for (std::int64_t i = 0; i < (layer.tokens < kManyTokens ? kWeights : 1); ++i)
    weights.push_back(random_matrix(kind, layer.out, layer.in));
  Workspace workspace;
  const Workspace::Scope scope(workspace);
  at::Tensor x = take_rows(workspace, {layer.tokens, layer.in}, layer.dtype),
             y = take_rows(workspace, {layer.tokens, layer.out}, layer.dtype);
  x.copy_(at::randn({layer.tokens, layer.in}));
  LowRanks adapters;
  if (layer.rank > 0) {
    adapters.push_back({.down = (at::randn({layer.rank, layer.in}) / 64).to(at::kBFloat16),
                        .up = (at::randn({layer.out, layer.rank}) / 64).to(at::kBFloat16)});
  }
  linear(x, {weights[0], {}, adapters}, {}, workspace, y);  // pages and caches
  std::size_t next = 0;
  for (auto _ : state) linear(x, {weights[++next % weights.size()], {}, adapters}, {}, workspace, y);
  state.counters["GB/s of weights"] = benchmark::Counter(static_cast<double>(bytes_of(weights[0])) / 1e9,
                                                         benchmark::Counter::kIsIterationInvariantRate);
}

void measure(benchmark::State& state, Layer layer, Weight kind) {
  const at::NoGradGuard no_grad;
  if (kind == Weight::prepacked) {
    const at::Tensor x = at::randn({layer.tokens, layer.in}).to(layer.dtype);
    const at::Tensor weight = prepacked((at::randn({layer.out, layer.in}) / 64).to(layer.dtype));
    for (auto _ : state) benchmark::DoNotOptimize(onednn_linear(x, weight));
  } else {
    measure_ours(state, layer, kind);
  }
  const double flop = 2.0 * static_cast<double>(layer.tokens * layer.in) * static_cast<double>(layer.out);
  bench::count_work(state, flop, layer.dtype == at::kFloat ? bench::Limit::f32 : bench::Limit::bf16, 1);
}

void add_arm(Layer layer, Weight kind) {
  const std::string beside = layer.rank > 0 ? fmt::format("+lora{}", layer.rank) : "";
  const std::string name =
      fmt::format("{}/{}x{}x{}/{}{}", layer.dtype == at::kFloat ? "f32" : "bf16", layer.tokens, layer.in,
                  layer.out, kNames[static_cast<std::size_t>(kind)], beside);
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { measure(state, layer, kind); })
      ->Iterations(layer.tokens < kTokens ? 24 : 3)
      ->Unit(benchmark::kMillisecond);
}

void add_arms() {
  for (const auto dtype : {at::kBFloat16, at::kFloat}) {
    for (const auto& [in, out] : {std::pair{4096, 4096}, {4096, 16384}, {16384, 4096}}) {
      for (const Weight kind : {Weight::prepacked, Weight::f32, Weight::bf16, Weight::fp8, Weight::nf4})
        add_arm({dtype, in, out}, kind);
      add_arm({.dtype = dtype, .in = in, .out = out, .rank = 32}, Weight::bf16);
    }
    for (const std::int64_t tokens : {1, 26, 128}) {
      for (const Weight kind : {Weight::bf16, Weight::fp8, Weight::nf4})
        add_arm({dtype, 4096, 4096, tokens}, kind);
    }
  }
}

}  // namespace
}  // namespace sluice::kernels

int main(int argc, char** argv) {
  at::set_num_threads(1);  // processor seconds of one thread: other work on the machine hardly shows
  sluice::kernels::add_arms();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
