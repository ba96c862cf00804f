#pragma once
// Group norm over positions whose channels lie together, then silu, in place:
//
//   x <- silu((x - mean) / sqrt(variance + eps) · weight + bias (+ skip))
//
// mean and variance over all positions and the channels of a group.  They are f64, summed in an order of
// their own, whatever the threads; the rest is f32, rounded once.

#include "kernels/lanes.h"

#include <cstdint>

namespace sluice::kernels {

template <typename T>  // float or Bf16
struct NormedPositions {
  T* values = nullptr;      // [count][channels]
  const T* skip = nullptr;  // of the same shape, or none
  std::int64_t count = 0, channels = 0;
};

struct GroupNormWeights {
  const float* weight = nullptr;  // [channels]
  const float* bias = nullptr;
  std::int64_t groups = 1;
  double eps = 0;
};

// channels: a multiple of kLanes and of groups.
template <typename T>
void group_norm_silu(const NormedPositions<T>& x, const GroupNormWeights& weights);

namespace reference {
// The plain twin: value by value.
template <typename T>
void group_norm_silu(const NormedPositions<T>& x, const GroupNormWeights& weights);
}  // namespace reference

}  // namespace sluice::kernels
