#pragma once
// What follows a linear layer's product, a row at a time while its sums are in a cache.

#include "kernels/lanes.h"

#include <cstdint>

namespace sluice::kernels {

enum class Epilogue { none, gelu_tanh };

// to[i] = epilogue(sums[i] + bias[i]), rounded once; bias: nullptr or f32.
void finish_row(const float* sums, std::int64_t length, const float* bias, Epilogue epilogue, float* to);
void finish_row(const float* sums, std::int64_t length, const float* bias, Epilogue epilogue, Bf16* to);

}  // namespace sluice::kernels
