#include "kernels/softmax_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice::kernels::reference {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

void put(float weight, float* to, float& sum) {
  *to = weight;
  sum += weight;
}

void put(float weight, Bf16* to, float& sum) {
  std::uint32_t bits;
  std::memcpy(&bits, &weight, sizeof bits);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
  const Bf16 half{static_cast<std::uint16_t>(bits >> 16)};
  std::memcpy(to, &half, sizeof half);
  std::memcpy(&weight, &bits, sizeof weight);
  sum += weight;
}

template <typename T>
void softmax_row(const SoftmaxBlock& x, std::int64_t row) {
  float* scores = x.scores + row * x.stride;
  T* to = reinterpret_cast<T*>(scores);
  SoftmaxState& state = x.states[row];
  const SoftmaxSpan span = x.spans ? x.spans[row] : SoftmaxSpan{0, x.columns};
  const bool scaled = x.bias || !(x.scale > 0);
  const float scale = scaled ? 1 : x.scale;
  float max = state.max;
  for (std::int64_t i = 0; i < x.columns; ++i) {
    if (scaled) scores[i] = scores[i] * x.scale + (x.bias ? x.bias[row * x.bias_stride + i] : 0);
    if (i < span.begin || i >= span.end) scores[i] = kNever;
    max = scores[i] > max ? scores[i] : max;
  }
  const float base = max == kNever ? 0 : max, factor = std::exp((state.max - base) * scale);
  state.sum *= factor;
  state.max = max;
  for (std::int64_t i = 0; i < x.width; ++i) x.sums[row * x.sums_stride + i] *= factor;
  for (std::int64_t i = 0; i < (x.columns + kSoftmaxColumns - 1) / kSoftmaxColumns * kSoftmaxColumns; ++i)
    put(i < x.columns ? std::exp((scores[i] - base) * scale) : 0, to + i, state.sum);
}

}  // namespace

void softmax_to_f32(const SoftmaxBlock& block) {
  for (std::int64_t row = 0; row < block.rows; ++row) softmax_row<float>(block, row);
}

void softmax_to_bf16(const SoftmaxBlock& block) {
  for (std::int64_t row = 0; row < block.rows; ++row) softmax_row<Bf16>(block, row);
}

}  // namespace sluice::kernels::reference
