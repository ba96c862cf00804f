#include "models/ltx2/audio_vae/causal_conv.h"

#include "kernels/bordered_frames.h"
#include "kernels/frame_conv.h"
#include "kernels/scratch.h"
#include "kernels/widen.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr double kPixelNormEps = 1e-6;  // the video autoencoder has 1e-8
constexpr std::int64_t kAlignment = 64;

kernels::FrameConvShape shape_of(const CausalConvSize& size) {
  return {.frames = 1,
          .height = size.steps,
          .width = size.bins,
          .in = size.in,
          .out = size.out,
          .kernel = {1, size.kernel, size.kernel},
          .rows = kernels::BorderRows::given,
          .step = size.step};
}

CausalConvSize size_of(const nn::Conv& conv, std::int64_t steps, std::int64_t bins, std::int64_t step) {
  const at::Tensor& w = conv.weight;
  return {.steps = steps, .bins = bins, .in = w.size(1), .out = w.size(0), .kernel = w.size(2), .step = step};
}

kernels::StoredValues values_of(const at::Tensor& x) {
  return x.defined() ? kernels::stored_values(kernels::Matrix(x.view({x.size(0), -1})))
                     : kernels::StoredValues{};
}

template <typename T>
std::int64_t input_bytes(const kernels::FrameConvShape& shape) {  // whole lines
  const std::int64_t values = shape.x_height() * shape.x_width() * kernels::position_stride<T>(shape.in);
  return (values * static_cast<std::int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename T>
std::int64_t scratch_bytes(const kernels::FrameConvShape& shape) {
  return input_bytes<T>(shape) + kernels::frame_conv_scratch<T>(shape, at::get_num_threads());
}

// One convolution: its input with zeros around it stands in the reused block.
template <typename T>
class Pass {
 public:
  Pass(const nn::Conv& conv, std::int64_t steps, std::int64_t bins, std::int64_t step = 1)
      : conv_(conv),
        shape_(shape_of(size_of(conv, steps, bins, step))),
        block_(kernels::scratch({scratch_bytes<T>(shape_)}, at::kByte)) {}

  // Where the positions of the last time steps begin, [steps, bins with zeros, stride].
  T* input(std::int64_t steps) const {
    return first() + (shape_.x_height() - steps) * shape_.x_width() * kernels::position_stride<T>(shape_.in);
  }

  // x stands for the last time steps; those before are zeros.
  void enter(const at::Tensor& x, kernels::Entry entry) const {
    clear_before(x.size(0));
    const kernels::EnteringFrame<T> frame = {.from = static_cast<const T*>(x.const_data_ptr()),
                                             .entry = entry};
    const kernels::BorderedPicture picture = {.height = x.size(0),
                                              .width = x.size(1),
                                              .channels = x.size(2),
                                              .columns = shape_.kernel.w / 2,
                                              .rows = 0,
                                              .eps = kPixelNormEps};
    kernels::enter_frames<T>(picture, {&frame, 1}, input(x.size(0)));
  }

  // Every time step and bin of x twice.
  void enter_twice(const at::Tensor& x) const {
    const at::Tensor all = positions();
    all.narrow(1, 0, 1).zero_();
    last_steps(all, 2 * x.size(0))
        .narrow(1, 1, 2 * x.size(1))
        .unflatten(1, {x.size(1), 2})
        .unflatten(0, {x.size(0), 2})
        .copy_(x.unsqueeze(1).unsqueeze(3));
  }

  // x stands behind two rows of zeros and in front of a column of them; where its time steps are even, the
  // last one is behind all that is looked at.
  void enter_in_front(const at::Tensor& x) const {
    const std::int64_t steps = shape_.x_height() - 2;
    last_steps(positions(), steps).narrow(1, 0, x.size(1)).copy_(x.narrow(0, 0, steps));
  }

  at::Tensor run(const at::Tensor& like, const at::Tensor& skip = {}) const {
    at::Tensor y = at::empty({shape_.height, shape_.width, shape_.out}, like.options());
    const at::Tensor weight = conv_.weight.contiguous();
    kernels::FrameConv<T> conv = {.shape = shape_,
                                  .x = first(),
                                  .weight = values_of(weight),
                                  .bias = values_of(conv_.bias),
                                  .y = static_cast<T*>(y.data_ptr())};
    if (skip.defined()) conv.skip = {static_cast<const T*>(skip.const_data_ptr())};
    kernels::convolve(conv, static_cast<std::byte*>(block_.data_ptr()) + input_bytes<T>(shape_));
    return y;
  }

 private:
  // [steps with zeros, bins with zeros, stride]; the last bin is zeros, and the rest of a word of channels.
  at::Tensor positions() const {
    at::Tensor all =
        at::from_blob(first(), {shape_.x_height(), shape_.x_width(), kernels::position_stride<T>(shape_.in)},
                      at::TensorOptions().dtype(sizeof(T) == sizeof(float) ? at::kFloat : at::kBFloat16));
    all.narrow(1, shape_.x_width() - 1, 1).zero_();
    if (shape_.in % kernels::kWordValues<T> != 0) all.narrow(2, shape_.in, 1).zero_();
    return all;
  }

  // Their channels; steps before them become zeros.
  at::Tensor last_steps(const at::Tensor& all, std::int64_t steps) const {
    const std::int64_t before = shape_.x_height() - steps;
    all.narrow(0, 0, before).zero_();
    return all.narrow(0, before, steps).narrow(2, 0, shape_.in);
  }

  T* first() const { return static_cast<T*>(block_.data_ptr()); }

  void clear_before(std::int64_t steps) const { std::fill(first(), input(steps), T{}); }

  const nn::Conv& conv_;
  kernels::FrameConvShape shape_;
  at::Tensor block_;
};

// work(value of the type that x is computed in)
template <typename Work>
at::Tensor in_dtype(const at::Tensor& x, const Work& work) {
  if (x.scalar_type() == at::kFloat) return work(float{});
  if (x.scalar_type() == at::kBFloat16) return work(kernels::Bf16{});
  throw Error(ErrorKind::internal, fmt::format("audio autoencoder: computes in f32 and bf16, not in {}",
                                               at::toString(x.scalar_type())));
}

at::Tensor entered(const nn::Conv& conv, const at::Tensor& x, kernels::Entry entry, const at::Tensor& skip) {
  return in_dtype(x, [&](auto value) {
    const Pass<decltype(value)> pass(conv, x.size(0), x.size(1));
    pass.enter(x, entry);
    return pass.run(x, skip);
  });
}

}  // namespace

at::Tensor causal_conv(const nn::Conv& conv, const at::Tensor& x) {
  return entered(conv, x, kernels::Entry::as_is, {});
}

at::Tensor normed_causal_conv(const nn::Conv& conv, const at::Tensor& x, const at::Tensor& skip) {
  return entered(conv, x, kernels::Entry::normed, skip);
}

at::Tensor place_conv(const nn::Conv& conv, const at::Tensor& x) {
  return entered(conv, x, kernels::Entry::as_is, {});
}

at::Tensor upsampling_conv(const nn::Conv& conv, const at::Tensor& x) {
  return in_dtype(x, [&](auto value) {
    const Pass<decltype(value)> pass(conv, 2 * x.size(0) - 1, 2 * x.size(1));
    pass.enter_twice(x);
    return pass.run(x);
  });
}

at::Tensor downsampling_conv(const nn::Conv& conv, const at::Tensor& x) {
  return in_dtype(x, [&](auto value) {
    const Pass<decltype(value)> pass(conv, (x.size(0) + 1) / 2, x.size(1) / 2, 2);
    pass.enter_in_front(x);
    return pass.run(x);
  });
}

std::int64_t causal_conv_scratch(const CausalConvSize& size, at::ScalarType dtype) {
  return dtype == at::kFloat ? scratch_bytes<float>(shape_of(size))
                             : scratch_bytes<kernels::Bf16>(shape_of(size));
}

}  // namespace sluice::ltx2
