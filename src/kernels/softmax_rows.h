#pragma once
// One block of columns of the online softmax, a row at a time: https://arxiv.org/abs/1805.02867.
// The widest vectors that the processor has are chosen at the first call.

#include <cstdint>
#include <limits>

namespace sluice::kernels {

inline constexpr std::int64_t kSoftmaxLanes = 16;  // rows are padded to multiples of it

struct SoftmaxState {  // of one row, over the blocks so far
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

// scores[i] · scale + bias[i] for i < columns, then exp(that - new maximum), written as f32 in place or as
// bf16 to `to_bf16`; up to the next multiple of kSoftmaxLanes the row must be allocated and becomes zeros.
// Updates the state and returns the factor by which what was summed with earlier blocks must be multiplied.
// bias: nullptr or f32.
float softmax_row(float* scores, std::int64_t columns, float scale, const float* bias, SoftmaxState& state,
                  std::uint16_t* to_bf16 = nullptr);

// to[i] = row[i] * factor, in f32 or rounded to bf16; any length.
void scale_row(const float* row, std::int64_t length, float factor, float* to);
void scale_row(const float* row, std::int64_t length, float factor, std::uint16_t* to_bf16);

}  // namespace sluice::kernels
