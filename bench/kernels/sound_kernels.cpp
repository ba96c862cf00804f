// Kernels of the vocoder at its widths on one thread: convolutions of 11 taps as a share of the registers'
// peak, the antialiased activation in samples a second.

#include "peak.h"

#include "kernels/conv_line.h"
#include "kernels/smooth_snake.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <vector>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kSamples = std::int64_t{1} << 20;  // of all channels

void conv(benchmark::State& state) {
  const std::int64_t channels = state.range(0), rows = kSamples / channels;
  const at::Tensor weight = at::randn({channels, channels, 11}).to(at::kBFloat16);
  const LineConv line = {
      .weights = {.values = {.format = Stored::bf16,
                             .values = static_cast<const std::byte*>(weight.const_data_ptr())},
                  .out = channels,
                  .in = channels,
                  .taps = 11},
      .dilation = 3,
      .padding = 15};
  const at::Tensor x = at::randn({rows + 30, channels});
  at::Tensor y = at::empty({rows, channels});
  for (auto _ : state)
    conv_line(line, {.rows = rows, .x = x.data_ptr<float>() + 15 * channels}, {.y = y.data_ptr<float>()});
  bench::count_work(state, 2.0 * 11 * static_cast<double>(kSamples / channels * channels * channels),
                    bench::Limit::f32, 1);
}

void activation(benchmark::State& state) {
  const std::int64_t channels = state.range(0), rows = kSamples / channels;
  const std::vector<float> filter(12, 0.1F), numbers(static_cast<std::size_t>(channels), 1);
  const SmoothSnake snake({2, filter, filter}, numbers, numbers);
  const at::Tensor x = at::randn({rows, channels});
  at::Tensor y = at::empty_like(x);
  for (auto _ : state) snake.run(x.data_ptr<float>(), rows, 0, rows, y.data_ptr<float>());
  state.SetItemsProcessed(state.iterations() * rows * channels);
}

void widths(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t channels : {768, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16})
    benchmark->Arg(channels);
}

BENCHMARK(conv)->Apply(widths);
BENCHMARK(activation)->Apply(widths);

}  // namespace
}  // namespace sluice::kernels

int main(int argc, char** argv) {
  at::set_num_threads(1);  // processor seconds of one thread: other work on the machine hardly shows
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
