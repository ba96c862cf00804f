// Convolutions of the video decoder at its widths, in GFLOP/s of the taps that lie inside the picture's
// frames and columns: bench_conv [--benchmark_filter=…].
#include "peak.h"

#include "kernels/frame_conv.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <type_traits>

namespace {

using namespace sluice::kernels;

template <typename T>
void convolution(benchmark::State& state) {
  const FrameConvShape shape = {.frames = state.range(4),
                                .height = state.range(2),
                                .width = state.range(3),
                                .in = state.range(0),
                                .out = state.range(1)};
  const auto dtype = std::is_same_v<T, float> ? at::kFloat : at::kBFloat16;
  const at::Tensor x =
      at::randn({shape.x_frames(), shape.x_height(), shape.x_width(), position_stride<T>(shape.in)})
          .to(dtype);
  const at::Tensor weight = at::randn({shape.out, shape.in, shape.kernel.taps()}).to(at::kBFloat16);
  at::Tensor y = at::empty({shape.frames, shape.height, shape.width, shape.out}, dtype);
  at::Tensor scratch = at::empty({frame_conv_scratch<T>(shape, at::get_num_threads())}, at::kByte);
  const FrameConv<T> conv = {
      .shape = shape,
      .x = static_cast<const T*>(x.data_ptr()),
      .weight = {.format = Stored::bf16, .values = static_cast<const std::byte*>(weight.data_ptr())},
      .y = static_cast<T*>(y.data_ptr())};
  for (auto _ : state) {
    convolve(conv, static_cast<std::byte*>(scratch.data_ptr()));
    benchmark::ClobberMemory();
  }
  const double flop = 2.0 * static_cast<double>(shape.frames * shape.width * shape.in * shape.out) * 9 *
                      static_cast<double>(3 * shape.height - 2);
  sluice::bench::count_work(state, flop,
                            std::is_same_v<T, float> ? sluice::bench::Limit::f32 : sluice::bench::Limit::bf16,
                            at::get_num_threads());
}

void widths(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"in", "out", "height", "width", "frames"});
  benchmark->Args({1024, 1024, 10, 16, 4});
  benchmark->Args({1024, 4096, 10, 16, 2});
  benchmark->Args({512, 512, 20, 32, 4});
  benchmark->Args({512, 512, 40, 64, 2});
  benchmark->Args({256, 256, 40, 64, 4});
  benchmark->Args({128, 128, 80, 128, 4});
  benchmark->Args({128, 48, 80, 128, 4});
  benchmark->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK(convolution<Bf16>)->Apply(widths);
BENCHMARK(convolution<float>)->Apply(widths);

}  // namespace

BENCHMARK_MAIN();
