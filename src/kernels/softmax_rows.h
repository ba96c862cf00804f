#pragma once
// One block of columns of the online softmax, a row at a time: https://arxiv.org/abs/1805.02867.

#include "kernels/lanes.h"

#include <cstdint>
#include <limits>

namespace sluice::kernels {

struct SoftmaxState {  // of one row, over the blocks so far
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

// scores[i] · scale + bias[i] for i < columns, then exp(that - new maximum), written as f32 in place or as
// bf16 to `halves`.  Rows are allocated up to the next multiple of kLanes (the bias too); there they become
// zeros. Updates the state and returns the factor by which sums over earlier blocks must be multiplied. bias:
// nullptr or f32.
float softmax_row(float* scores, std::int64_t columns, float scale, const float* bias, SoftmaxState& state,
                  Bf16* halves = nullptr);

// to[i] = row[i] · factor; any length, may be in place.
void scale_row(const float* row, std::int64_t length, float factor, float* to);
void scale_row(const float* row, std::int64_t length, float factor, Bf16* to);

}  // namespace sluice::kernels
