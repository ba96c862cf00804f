#include "kernels/snake_rows.h"

#include "kernels/lanes.h"
#include "kernels/lanes_sine.h"

#include <bit>
#include <cmath>

namespace sluice::kernels {
namespace {

constexpr int kVectors = static_cast<int>(kSnakeVector / kLanes);  // side by side: they share a tap's weight

// Of kCount vectors, or of the first `part` values of one.
template <int kCount>
SLUICE_INLINE void filter(const FilterRuns& runs, const float* from, std::int64_t part, Lanes* sums) {
  for (int v = 0; v < kCount; ++v) sums[v] = Lanes{};
  for (std::int64_t t = 0; t < runs.tap_count; ++t) {
    const Lanes weight = Lanes{} + runs.taps[t].weight;
    const float* values = from + runs.taps[t].offset;
    for (int v = 0; v < kCount; ++v) {
      Lanes x;
      part < kLanes ? load_part(values, part, x) : load(values + v * kLanes, x);
      sums[v] += weight * x;
    }
  }
}

template <int kCount>
SLUICE_INLINE void store_all(const Lanes* sums, std::int64_t part, float* to) {
  for (int v = 0; v < kCount; ++v)
    part < kLanes ? store_part(sums[v], part, to) : store(sums[v], to + v * kLanes);
}

// Negative from the first argument on that is beyond what the sine holds for, or NaN.
using Margin = std::int32_t __attribute__((vector_size(4 * kLanes)));

SLUICE_INLINE void snake(const float* frequency, const float* amplitude, Lanes& x, Margin& margin) {
  Lanes f, a, sine;
  load(frequency, f);
  load(amplitude, a);
  const Lanes argument = x * f;
  margin |= std::bit_cast<std::int32_t>(kSineRange) - (reinterpret_cast<Margin>(argument) & 0x7fffffff);
  squared_sine(argument, sine);
  x = sine * a + x;
}

template <int kCount>
SLUICE_INLINE void filter_step(const FilterRuns& runs, std::int64_t run, std::int64_t i, std::int64_t part) {
  Lanes sums[kCount];
  filter<kCount>(runs, runs.from + run * runs.from_stride + i, part, sums);
  store_all<kCount>(sums, part, runs.to + run * runs.to_stride + i);
}

SLUICE_INLINE void filter_rows_body(const FilterRuns& runs) {
  for (std::int64_t run = 0; run < runs.runs; ++run) {
    std::int64_t i = 0;
    for (; i + kSnakeVector <= runs.length; i += kSnakeVector) filter_step<kVectors>(runs, run, i, kLanes);
    for (; i + kLanes <= runs.length; i += kLanes) filter_step<1>(runs, run, i, kLanes);
    if (i < runs.length) filter_step<1>(runs, run, i, runs.length - i);
  }
}

template <int kCount>
SLUICE_INLINE void snake_step(const FilterRuns& runs, const SnakeNumbers& numbers, std::int64_t run,
                              std::int64_t i, std::int64_t part, std::int64_t& channel, Margin& margin) {
  Lanes sums[kCount];
  filter<kCount>(runs, runs.from + run * runs.from_stride + i, part, sums);
  for (int v = 0; v < kCount; ++v)
    snake(numbers.frequency + channel + v * kLanes, numbers.amplitude + channel + v * kLanes, sums[v],
          margin);
  store_all<kCount>(sums, part, runs.to + run * runs.to_stride + i);
  channel += kCount * kLanes;
  if (channel >= numbers.channels) channel %= numbers.channels;
}

SLUICE_INLINE bool filter_and_snake_rows_body(const FilterRuns& runs, const SnakeNumbers& numbers) {
  Margin margin = {};
  for (std::int64_t run = 0; run < runs.runs; ++run) {
    std::int64_t i = 0, channel = 0;
    for (; i + kSnakeVector <= runs.length; i += kSnakeVector)
      snake_step<kVectors>(runs, numbers, run, i, kLanes, channel, margin);
    for (; i + kLanes <= runs.length; i += kLanes)
      snake_step<1>(runs, numbers, run, i, kLanes, channel, margin);
    if (i < runs.length) snake_step<1>(runs, numbers, run, i, runs.length - i, channel, margin);
  }
  std::int32_t all = 0;
  for (std::int64_t i = 0; i < kLanes; ++i) all |= margin[i];
  return all >= 0;
}

SLUICE_COMPILE(void, filter_rows, (const FilterRuns& runs), (runs))
SLUICE_COMPILE(bool, filter_and_snake_rows, (const FilterRuns& runs, const SnakeNumbers& numbers),
               (runs, numbers))

}  // namespace

void filter_rows(const FilterRuns& runs) {
  best_of(k_filter_rows)(runs);
}

bool filter_and_snake_rows(const FilterRuns& runs, const SnakeNumbers& numbers) {
  return best_of(k_filter_and_snake_rows)(runs, numbers);
}

namespace reference {

void filter_and_snake_rows(const FilterRuns& runs, const SnakeNumbers& numbers) {
  for (std::int64_t run = 0; run < runs.runs; ++run) {
    for (std::int64_t i = 0; i < runs.length; ++i) {
      float u = 0;
      for (std::int64_t t = 0; t < runs.tap_count; ++t)
        u += runs.taps[t].weight * runs.from[run * runs.from_stride + i + runs.taps[t].offset];
      const std::int64_t channel = i % numbers.channels;
      const double sine = std::sin(static_cast<double>(u * numbers.frequency[channel]));
      runs.to[run * runs.to_stride + i] = u + numbers.amplitude[channel] * static_cast<float>(sine * sine);
    }
  }
}

}  // namespace reference
}  // namespace sluice::kernels
