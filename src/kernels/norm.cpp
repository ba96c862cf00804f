#include "kernels/norm.h"

#include "kernels/norm_rows.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kRowsAtOnce = 16;  // the least a thread takes: some 100 KiB at a width of 4096

// Elements of a float or bf16 tensor as the row functions take them.
template <typename T>
const T* elements(const at::Tensor& x) {
  return static_cast<const T*>(x.const_data_ptr());
}

bool has_rows(const at::Tensor& x) {
  return (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) && x.dim() == 3;
}

// [batch or 1, tokens or 1, width] -> strides of batch and token, 0 where there is one for all.
template <typename T>
struct Broadcast {
  const T* data;
  std::int64_t batch_stride, token_stride;

  explicit Broadcast(const at::Tensor& x)
      : data(elements<T>(x)),
        batch_stride(x.size(0) == 1 ? 0 : x.stride(0)),
        token_stride(x.size(1) == 1 ? 0 : x.stride(1)) {}
  const T* row(std::int64_t batch, std::int64_t token) const {
    return data + batch * batch_stride + token * token_stride;
  }
};

template <typename T>
void modulate_rows(const at::Tensor& x, float eps, const at::Tensor& scale, const at::Tensor& shift,
                   at::Tensor& out) {
  const std::int64_t tokens = x.size(1), width = x.size(2);
  const T* from = elements<T>(x);
  T* to = static_cast<T*>(out.mutable_data_ptr());
  const Broadcast<T> scales(scale), shifts(shift);
  at::parallel_for(0, x.size(0) * tokens, kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t batch = row / tokens, token = row % tokens;
      norm_modulate_row(from + row * width, width, eps, scales.row(batch, token), shifts.row(batch, token),
                        to + row * width);
    }
  });
}

template <typename T>
void rotate_rows(at::Tensor& x, float eps, const at::Tensor& weight, const SplitRotation& rotation) {
  const std::int64_t tokens = x.size(1), width = x.size(2);
  const bool rotated = rotation.cos.defined();
  const std::int64_t heads = rotated ? rotation.cos.size(1) : 1;
  T* data = static_cast<T*>(x.mutable_data_ptr());
  at::parallel_for(0, x.size(0) * tokens, kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      RotationRow angles;
      if (rotated) {
        const std::int64_t batch = rotation.cos.size(0) == 1 ? 0 : row / tokens;
        const std::int64_t at = batch * rotation.cos.stride(0) + row % tokens * rotation.cos.stride(2);
        angles = {elements<float>(rotation.cos) + at, elements<float>(rotation.sin) + at,
                  rotation.cos.stride(1)};
      }
      norm_rotate_row(data + row * width, width, heads, eps, elements<float>(weight), angles);
    }
  });
}

}  // namespace

at::Tensor rms_norm_modulated(const at::Tensor& x, double eps, const at::Tensor& scale,
                              const at::Tensor& shift) {
  if (!has_rows(x)) return reference::rms_norm_modulated(x, eps, scale, shift);
  const at::Tensor input = x.contiguous(), scales = scale.contiguous(), shifts = shift.contiguous();
  at::Tensor out = at::empty_like(input);
  if (x.scalar_type() == at::kFloat) {
    modulate_rows<float>(input, static_cast<float>(eps), scales, shifts, out);
  } else {
    modulate_rows<Bf16>(input, static_cast<float>(eps), scales, shifts, out);
  }
  return out;
}

void rms_norm_rotate_(at::Tensor& x, double eps, const at::Tensor& weight, const SplitRotation& rotation) {
  if (!has_rows(x) || !x.is_contiguous()) return reference::rms_norm_rotate_(x, eps, weight, rotation);
  const at::Tensor weights = weight.to(at::kFloat).contiguous();
  const SplitRotation angles =
      rotation.cos.defined() ? SplitRotation{rotation.cos.contiguous(), rotation.sin.contiguous()} : rotation;
  if (x.scalar_type() == at::kFloat) {
    rotate_rows<float>(x, static_cast<float>(eps), weights, angles);
  } else {
    rotate_rows<Bf16>(x, static_cast<float>(eps), weights, angles);
  }
}

namespace reference {

at::Tensor rms_norm_modulated(const at::Tensor& x, double eps, const at::Tensor& scale,
                              const at::Tensor& shift) {
  return at::addcmul(shift, at::rms_norm(x, {x.size(-1)}, {}, eps), scale + 1);
}

void rms_norm_rotate_(at::Tensor& x, double eps, const at::Tensor& weight, const SplitRotation& rotation) {
  at::Tensor normed = at::rms_norm(x, {x.size(-1)}, weight.to(x.scalar_type()), eps);
  if (rotation.cos.defined()) {
    const at::Tensor cos = rotation.cos.transpose(1, 2), sin = rotation.sin.transpose(1, 2);
    const at::Tensor halves = normed.to(at::kFloat).unflatten(2, {rotation.cos.size(1), 2, -1});
    const at::Tensor first = halves.select(3, 0), second = halves.select(3, 1);
    normed = at::stack({first * cos - second * sin, second * cos + first * sin}, 3).flatten(2);
  }
  x.copy_(normed);
}

}  // namespace reference
}  // namespace sluice::kernels
