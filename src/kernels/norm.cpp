#include "kernels/norm.h"

#include "kernels/norm_rows.h"
#include "kernels/rows.h"
#include "kernels/work_timer.h"

#include <sluice/error.h>

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

bool is_stream(const at::Tensor& x) {  // of tokens
  return (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) && x.dim() == 3 && has_rows(x);
}

template <typename T>
void modulate_rows(const at::Tensor& x, const Modulated& by, at::Tensor& y) {
  const std::int64_t tokens = x.size(1), width = x.size(2), from_stride = row_stride(x),
                     to_stride = row_stride(y);
  const RowNorming norming{by.norm, width, static_cast<float>(by.eps)};
  const T* from = elements<T>(x);
  T* to = static_cast<T*>(y.mutable_data_ptr());
  const auto scales = rows_of<T>(by.scale, x.scalar_type(), tokens, width);
  const auto shifts = rows_of<T>(by.shift, x.scalar_type(), tokens, width);
  at::parallel_for(0, x.size(0) * tokens, kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      norm_modulate_row<T>(norming, from + row * from_stride, scales.data ? scales.row(row) : nullptr,
                           shifts.data ? shifts.row(row) : nullptr, to + row * to_stride);
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

void norm_modulated(const at::Tensor& x, const Modulated& by, at::Tensor& y) {
  const WorkTimer timer(Work::elementwise);
  if (!is_stream(x) || !is_stream(y) || y.sizes() != x.sizes() || y.scalar_type() != x.scalar_type())
    throw Error(ErrorKind::internal, "a norm between tensors that are no streams of one shape");
  if (x.scalar_type() == at::kFloat) {
    modulate_rows<float>(x, by, y);
  } else {
    modulate_rows<Bf16>(x, by, y);
  }
}

at::Tensor rms_norm_modulated(const at::Tensor& x, double eps, const at::Tensor& scale,
                              const at::Tensor& shift) {
  const at::Tensor input = x.contiguous();
  if (!is_stream(input)) return reference::rms_norm_modulated(x, eps, scale, shift);
  at::Tensor y = at::empty_like(input);
  norm_modulated(input, {.eps = eps, .scale = scale.contiguous(), .shift = shift.contiguous()}, y);
  return y;
}

void rms_norm_rotate_(at::Tensor& x, double eps, const at::Tensor& weight, const SplitRotation& rotation) {
  if (!is_stream(x) || !x.is_contiguous()) return reference::rms_norm_rotate_(x, eps, weight, rotation);
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

at::Tensor norm_modulated(const at::Tensor& x, const Modulated& by) {
  at::Tensor y = x;
  if (by.norm == RowNorm::rms) y = at::rms_norm(x, {x.size(-1)}, {}, by.eps);
  if (by.norm == RowNorm::layer) y = at::layer_norm(x, {x.size(-1)}, {}, {}, by.eps);
  auto gathered = [&](const RowVectors& of) { return of.gathered(x.size(0), x.size(1)).to(x.scalar_type()); };
  if (by.scale.defined()) y = y * (gathered(by.scale) + 1);
  return by.shift.defined() ? y + gathered(by.shift) : y;
}

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
