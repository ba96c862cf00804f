#pragma once
// What this machine does at most, measured in the run that is compared with it.

#include <benchmark/benchmark.h>

namespace sluice::bench {

// GFLOP/s of one thread whose operands and sums all stay in registers, on the path that kernels take.
double peak_f32();
double peak_bf16();

// GB/s of one thread copying a block larger than the caches: bytes read plus bytes written.
double peak_copy();

// Counters of a benchmark: work a second, and its share of the peak of as many threads.
enum class Limit { f32, bf16, copy };
void count_work(benchmark::State& state, double work_an_iteration, Limit limit, int threads);

}  // namespace sluice::bench
