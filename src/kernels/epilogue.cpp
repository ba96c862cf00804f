#include "kernels/epilogue.h"

#include "kernels/lanes_exp.h"

namespace sluice::kernels {
namespace {

// x · (1 + tanh(u)) / 2 = x / (1 + exp(-2u)) with u = sqrt(2 / pi) · (x + 0.044715 x³).  exp_in_place takes
// no positive numbers: where -2u is one, both parts of the fraction are multiplied by exp(2u).
SLUICE_INLINE void gelu_tanh_in_place(Lanes& x) {
  const Lanes zero = {};
  const Lanes one = zero + 1.0F;
  const Lanes twice = (x + x * x * x * 0.044715F) * 1.5957691216F;
  Lanes power = twice > zero ? -twice : twice;
  exp_in_place(power);
  x *= (twice > zero ? one : power) / (power + one);
}

template <typename T>
SLUICE_INLINE void finish_body(const float* sums, std::int64_t length, const float* bias, bool gelu, T* to) {
  for (std::int64_t i = 0; i < length; i += kLanes) {
    const std::int64_t count = length - i;
    Lanes x, b = {};
    if (count >= kLanes) {
      load(sums + i, x);
      if (bias) load(bias + i, b);
    } else {
      load_part(sums + i, count, x);
      if (bias) load_part(bias + i, count, b);
    }
    if (bias) x += b;
    if (gelu) gelu_tanh_in_place(x);
    if (count >= kLanes) {
      store(x, to + i);
    } else {
      store_part(x, count, to + i);
    }
  }
}
SLUICE_INLINE void finish_f32_body(const float* sums, std::int64_t length, const float* bias, bool gelu,
                                   float* to) {
  finish_body(sums, length, bias, gelu, to);
}
SLUICE_INLINE void finish_bf16_body(const float* sums, std::int64_t length, const float* bias, bool gelu,
                                    Bf16* to) {
  finish_body(sums, length, bias, gelu, to);
}

SLUICE_COMPILE(void, finish_f32,
               (const float* sums, std::int64_t length, const float* bias, bool gelu, float* to),
               (sums, length, bias, gelu, to))
SLUICE_COMPILE(void, finish_bf16,
               (const float* sums, std::int64_t length, const float* bias, bool gelu, Bf16* to),
               (sums, length, bias, gelu, to))

}  // namespace

void finish_row(const float* sums, std::int64_t length, const float* bias, Epilogue epilogue, float* to) {
  best_of(k_finish_f32)(sums, length, bias, epilogue == Epilogue::gelu_tanh, to);
}

void finish_row(const float* sums, std::int64_t length, const float* bias, Epilogue epilogue, Bf16* to) {
  best_of(k_finish_bf16)(sums, length, bias, epilogue == Epilogue::gelu_tanh, to);
}

}  // namespace sluice::kernels
