#include "kernels/snake_rows.h"

#include "kernels/lanes.h"
#include "kernels/lanes_sine.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sluice::kernels {
namespace {

// Registers as wide as the instruction set has them: GCC keeps wider vectors in memory, which costs ten times
// the arithmetic here.
template <int kWidth>
struct Registers;
template <>
struct Registers<4> {
  using Floats = float __attribute__((vector_size(16)));
  using Integers = std::int32_t __attribute__((vector_size(16)));
};
template <>
struct Registers<8> {
  using Floats = float __attribute__((vector_size(32)));
  using Integers = std::int32_t __attribute__((vector_size(32)));
};
template <>
struct Registers<16> {
  using Floats = float __attribute__((vector_size(64)));
  using Integers = std::int32_t __attribute__((vector_size(64)));
};
constexpr int kSideBySide = 4;  // registers that share a tap's weight

template <typename Floats>
SLUICE_INLINE void load_first(const float* from, std::int64_t count, Floats& to) {
  to = Floats{};
  std::memcpy(&to, from, static_cast<std::size_t>(count) * sizeof(float));
}

// Values of kCount registers, or the first `part` of one.
template <typename Floats, int kCount>
class Places {
 public:
  static constexpr std::int64_t kWidth = sizeof(Floats) / sizeof(float);

  // Σ weight · from[offset]; kTaps: their number where it is known, so that weights stay in registers.
  template <int kTaps>
  SLUICE_INLINE void filter(const FilterRuns& runs, const float* from, std::int64_t part) {
    const std::int64_t taps = kTaps ? kTaps : runs.tap_count;
    for (int v = 0; v < kCount; ++v) sums_[v] = Floats{};
#pragma GCC unroll 12
    for (std::int64_t t = 0; t < taps; ++t) {
      const Floats weight = Floats{} + runs.taps[t].weight;
      const float* values = from + runs.taps[t].offset;
#pragma GCC unroll 4
      for (int v = 0; v < kCount; ++v) {
        Floats x;
        part < kWidth ? load_first(values, part, x) : load_first(values + v * kWidth, kWidth, x);
        sums_[v] += weight * x;
      }
    }
  }

  // `margin` is negative from the first argument on that is beyond what the sine holds for, or NaN.
  template <typename Integers>
  SLUICE_INLINE void snake(const float* frequency, const float* amplitude, Integers& margin) {
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      Floats f, a, sine;
      load_first(frequency + v * kWidth, kWidth, f);
      load_first(amplitude + v * kWidth, kWidth, a);
      const Floats argument = sums_[v] * f;
      margin |= std::bit_cast<std::int32_t>(kSineRange) - (reinterpret_cast<Integers>(argument) & 0x7fffffff);
      squared_sine(argument, sine);
      sums_[v] = sine * a + sums_[v];
    }
  }

  SLUICE_INLINE void store(float* to, std::int64_t part) const {
    for (int v = 0; v < kCount; ++v)
      std::memcpy(to + v * kWidth, &sums_[v], static_cast<std::size_t>(std::min(part, kWidth)) * 4);
  }

 private:
  Floats sums_[kCount];
};

template <int kWidth, int kTaps>
struct Pass {
  using Floats = typename Registers<kWidth>::Floats;
  using Integers = typename Registers<kWidth>::Integers;
  static constexpr std::int64_t kStep = kSideBySide * kWidth;

  const FilterRuns& runs;
  const SnakeNumbers* numbers;  // nullptr: the filter alone
  Integers margin = {};

  template <int kCount>
  SLUICE_INLINE void step(std::int64_t run, std::int64_t i, std::int64_t part, std::int64_t& channel) {
    Places<Floats, kCount> places;
    places.template filter<kTaps>(runs, runs.from + run * runs.from_stride + i, part);
    if (numbers) {
      places.snake(numbers->frequency + channel, numbers->amplitude + channel, margin);
      channel += kCount * kWidth;
      if (channel >= numbers->channels) channel %= numbers->channels;
    }
    places.store(runs.to + run * runs.to_stride + i, part);
  }

  SLUICE_INLINE bool run_all() {
    for (std::int64_t run = 0; run < runs.runs; ++run) {
      std::int64_t i = 0, channel = 0;
      for (; i + kStep <= runs.length; i += kStep) step<kSideBySide>(run, i, kWidth, channel);
      for (; i + kWidth <= runs.length; i += kWidth) step<1>(run, i, kWidth, channel);
      if (i < runs.length) step<1>(run, i, runs.length - i, channel);
    }
    std::int32_t all = 0;
    for (int i = 0; i < kWidth; ++i) all |= margin[i];
    return all >= 0;
  }
};

// The published filters have 12 taps at ratio 2: 6 fall on samples when the rate rises.
template <int kWidth>
SLUICE_INLINE bool run_filter(const FilterRuns& runs) {
  if (runs.tap_count == 12) return Pass<kWidth, 12>{runs, nullptr}.run_all();
  return Pass<kWidth, 0>{runs, nullptr}.run_all();
}
template <int kWidth>
SLUICE_INLINE bool run_snake(const FilterRuns& runs, const SnakeNumbers& numbers) {
  if (runs.tap_count == 6) return Pass<kWidth, 6>{runs, &numbers}.run_all();
  return Pass<kWidth, 0>{runs, &numbers}.run_all();
}

using Filter = bool(const FilterRuns&);
using Snake = bool(const FilterRuns&, const SnakeNumbers&);

bool filter_baseline(const FilterRuns& runs) {
  return run_filter<4>(runs);
}
bool snake_baseline(const FilterRuns& runs, const SnakeNumbers& numbers) {
  return run_snake<4>(runs, numbers);
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] bool filter_avx2(const FilterRuns& runs) {
  return run_filter<8>(runs);
}
[[gnu::target("avx2,fma")]] bool snake_avx2(const FilterRuns& runs, const SnakeNumbers& numbers) {
  return run_snake<8>(runs, numbers);
}
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,fma")]] bool filter_avx512(const FilterRuns& runs) {
  return run_filter<16>(runs);
}
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,fma")]] bool snake_avx512(const FilterRuns& runs,
                                                                            const SnakeNumbers& numbers) {
  return run_snake<16>(runs, numbers);
}
constexpr Compilations<Filter> k_filter = {filter_baseline, filter_avx2, filter_avx512};
constexpr Compilations<Snake> k_snake = {snake_baseline, snake_avx2, snake_avx512};
#else
constexpr Compilations<Filter> k_filter = {filter_baseline, filter_baseline, filter_baseline};
constexpr Compilations<Snake> k_snake = {snake_baseline, snake_baseline, snake_baseline};
#endif

}  // namespace

void filter_rows(const FilterRuns& runs) {
  best_of(k_filter)(runs);
}

bool filter_and_snake_rows(const FilterRuns& runs, const SnakeNumbers& numbers) {
  return best_of(k_snake)(runs, numbers);
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
