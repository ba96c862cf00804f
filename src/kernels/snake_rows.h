#pragma once
// The two passes of SmoothSnake over a block, in vectors that run over time and channels alike: what rows lie
// behind each other without gaps is one run.

#include <cstdint>

namespace sluice::kernels {

struct FlatTap {
  std::int64_t offset = 0;  // values from a result's place to what is weighted
  float weight = 0;
};

struct FilterRuns {
  const float* from = nullptr;
  float* to = nullptr;
  std::int64_t from_stride = 0, to_stride = 0;  // values from a run to the next
  std::int64_t runs = 0, length = 0;            // length: values of a run
  const FlatTap* taps = nullptr;
  std::int64_t tap_count = 0;
};

// By channel, from that of a run's first value on: value i has number i modulo channels, and there are
// channels + kSnakeVector of them.
struct SnakeNumbers {
  const float* frequency = nullptr;
  const float* amplitude = nullptr;
  std::int64_t channels = 0;
};
inline constexpr std::int64_t kSnakeVector = 64;

// to = Σ weight · from[offset]
void filter_rows(const FilterRuns& runs);

// The same and snake of it.  Returns false where an argument of the sine is beyond what it holds for
// (lanes_sine.h): some of the results are wrong then.
bool filter_and_snake_rows(const FilterRuns& runs, const SnakeNumbers& numbers);

namespace reference {
// Right for every argument.
void filter_and_snake_rows(const FilterRuns& runs, const SnakeNumbers& numbers);
}  // namespace reference

}  // namespace sluice::kernels
