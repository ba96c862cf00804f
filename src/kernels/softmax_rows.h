#pragma once
// Online softmax over one block of columns: https://arxiv.org/abs/1805.02867.  Everything is in powers of
// two: logarithms are to base 2, and the caller multiplies scale and bias with log2 e.

#include "kernels/lanes.h"

#include <cstdint>
#include <limits>

namespace sluice::kernels {

inline constexpr std::int64_t kMostSoftmaxRows = 64;
inline constexpr std::int64_t kSoftmaxColumns = 32;  // rows are whole multiples of it

struct SoftmaxState {                                   // of one row, over the blocks so far
  float max = -std::numeric_limits<float>::infinity();  // of scores; with a bias or scale <= 0: of logarithms
  float sum = 0;                                        // of the weights as they are written
};

struct SoftmaxSpan {  // columns of a block that a row sees: [begin, end)
  std::int64_t begin, end;
};

struct SoftmaxBlock {
  float* scores = nullptr;  // [rows][columns up to a multiple of kSoftmaxColumns], overwritten
  std::int64_t stride = 0;  // values from one row to the next
  std::int64_t rows = 0;    // at most kMostSoftmaxRows
  std::int64_t columns = 0;
  const SoftmaxSpan* spans = nullptr;  // one a row; nullptr: every row sees all columns
  float scale = 1;
  const float* bias = nullptr;     // laid out like the scores; nullptr: none
  std::int64_t bias_stride = 0;    // 0: one row for all
  SoftmaxState* states = nullptr;  // one a row
  float* sums = nullptr;           // [rows][width], over earlier blocks: multiplied where a maximum grew
  std::int64_t sums_stride = 0, width = 0;  // a multiple of kLanes
};

// weight = exp(score · scale + bias - the new maximum of that), 0 for columns that a row does not see and
// behind the last one.  In f32 a weight takes its score's place, good to 2 units in the last place and one
// more for each unit that its logarithm lies below zero.  In bf16 the weights of a row begin where its scores
// began; what rounding to bf16 costs is a hundred times what the exponential's error is.
void softmax_to_f32(const SoftmaxBlock& block);
void softmax_to_bf16(const SoftmaxBlock& block);

// to[i] = row[i] · factor; any length, may be in place.
void scale_row(const float* row, std::int64_t length, float factor, float* to);
void scale_row(const float* row, std::int64_t length, float factor, Bf16* to);

void add_row(const float* row, std::int64_t length, float* to);  // to[i] += row[i]

namespace reference {
// The plain twins, value by value with the library's exp.
void softmax_to_f32(const SoftmaxBlock& block);
void softmax_to_bf16(const SoftmaxBlock& block);
}  // namespace reference

}  // namespace sluice::kernels
