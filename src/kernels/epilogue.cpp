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
SLUICE_INLINE void finish_row(const FinishedRows<T>& of, const float* sums, std::int64_t row,
                              std::int64_t columns) {
  const T* gate = of.gate.data ? of.gate.row(row) : nullptr;
  const T* residual = of.residual ? of.residual + row * of.residual_stride : nullptr;
  T* to = of.to + row * of.stride;
  for (std::int64_t i = 0; i < columns; i += kLanes) {
    const std::int64_t count = columns - i;
    Lanes x, part;
    load_up_to(sums + i, count, x);
    x *= of.factor;
    if (of.bias) {
      load_up_to(of.bias + i, count, part);
      x += part;
    }
    if (of.activation == Activation::gelu_tanh) gelu_tanh_in_place(x);
    if (gate) {
      load_up_to(gate + i, count, part);
      x *= part;
    }
    if (residual) {
      load_up_to(residual + i, count, part);
      x += part;
    }
    if (count >= kLanes) {
      store(x, to + i);
    } else {
      store_part(x, count, to + i);
    }
  }
}

template <typename T>
SLUICE_INLINE void finish(const FinishedRows<T>& of, std::int64_t begin, std::int64_t end,
                          std::int64_t columns) {
  for (std::int64_t row = begin; row < end; ++row)
    finish_row(of, of.sums + (row - begin) * of.sums_stride, row, columns);
}
SLUICE_INLINE void finish_f32_body(const FinishedRows<float>& of, std::int64_t begin, std::int64_t end,
                                   std::int64_t columns) {
  finish(of, begin, end, columns);
}
SLUICE_INLINE void finish_bf16_body(const FinishedRows<Bf16>& of, std::int64_t begin, std::int64_t end,
                                    std::int64_t columns) {
  finish(of, begin, end, columns);
}

SLUICE_COMPILE(void, finish_f32,
               (const FinishedRows<float>& of, std::int64_t begin, std::int64_t end, std::int64_t columns),
               (of, begin, end, columns))
SLUICE_COMPILE(void, finish_bf16,
               (const FinishedRows<Bf16>& of, std::int64_t begin, std::int64_t end, std::int64_t columns),
               (of, begin, end, columns))

}  // namespace

void finish_rows(const FinishedRows<float>& of, std::int64_t begin, std::int64_t end, std::int64_t columns) {
  best_of(k_finish_f32)(of, begin, end, columns);
}

void finish_rows(const FinishedRows<Bf16>& of, std::int64_t begin, std::int64_t end, std::int64_t columns) {
  best_of(k_finish_bf16)(of, begin, end, columns);
}

}  // namespace sluice::kernels
