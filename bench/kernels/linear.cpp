// Linear layers of the published width at 1024 tokens on one thread: GFLOP/s for every format of the weight,
// beside oneDNN's product with a weight that was packed before, the best this machine has.

#include "kernels/linear.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>
#include <utility>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kTokens = 1024;

struct Layer {
  at::ScalarType dtype;  // that is computed with
  std::int64_t in, out;
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

void measure(benchmark::State& state, Layer layer, Weight kind) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({kTokens, layer.in}).to(layer.dtype);
  if (kind == Weight::prepacked) {
    const at::Tensor weight = prepacked((at::randn({layer.out, layer.in}) / 64).to(layer.dtype));
    for (auto _ : state) benchmark::DoNotOptimize(onednn_linear(x, weight));
  } else {
    const Matrix weight = random_matrix(kind, layer.out, layer.in);
    for (auto _ : state) benchmark::DoNotOptimize(linear(x, weight, {}));
  }
  const double flop = 2.0 * kTokens * static_cast<double>(layer.in) * static_cast<double>(layer.out);
  state.counters["GFLOP/s"] = benchmark::Counter(flop / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

void add_arms() {
  for (const auto dtype : {at::kBFloat16, at::kFloat}) {
    for (const auto& [in, out] : {std::pair{4096, 4096}, {4096, 16384}, {16384, 4096}}) {
      for (const Weight kind : {Weight::prepacked, Weight::f32, Weight::bf16, Weight::fp8, Weight::nf4}) {
        const std::string name = fmt::format("{}/{}x{}/{}", dtype == at::kFloat ? "f32" : "bf16", in, out,
                                             kNames[static_cast<std::size_t>(kind)]);
        const Layer layer{dtype, in, out};
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
          measure(state, layer, kind);
        })->Iterations(1);
      }
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
