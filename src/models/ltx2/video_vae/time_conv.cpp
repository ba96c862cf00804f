#include "models/ltx2/video_vae/time_conv.h"

#include "kernels/scratch.h"
#include "kernels/widen.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace sluice::ltx2 {
namespace {

std::int64_t bytes_of(const at::Tensor& x) {
  return x.defined() ? static_cast<std::int64_t>(x.nbytes()) : 0;
}

at::Tensor last_frames(const at::Tensor& x, std::int64_t count) {
  return x.narrow(2, x.size(2) - count, count);
}

kernels::StoredValues stored(const at::Tensor& x) {
  return x.defined() ? kernels::stored_values(kernels::Matrix(x.reshape({1, -1}))) : kernels::StoredValues{};
}

void check(const ConvSize& size) {
  if (size.padding == SpatialPadding::zeros || std::min(size.height, size.width) > kConvTaps / 2) return;
  throw Error(ErrorKind::usage,
              fmt::format("video vae: a picture of {} x {} positions cannot be reflected at its border",
                          size.width, size.height),
              "use a larger picture");
}

// One push: everything in one block of memory, which only the next push takes again.
template <typename T>
class Pass {
 public:
  Pass(const ConvSize& size, at::ScalarType dtype)
      : size_(size),
        memory_(conv_memory(size, dtype)),
        scratch_(kernels::scratch({memory_.all()}, at::kByte)) {}

  void enter(const std::vector<EnteringRef>& frames) {
    std::vector<kernels::EnteringFrame<T>> entering(frames.size());
    for (std::int64_t clip = 0; clip < size_.batch; ++clip) {
      std::transform(frames.begin(), frames.end(), entering.begin(), [&](const EnteringRef& x) {
        return kernels::EnteringFrame<T>{frame_values<const T>(x.frame, clip), x.entry};
      });
      kernels::enter_frames<T>(size_.picture(), entering, entered(clip));
    }
  }

  // The last frames as they are convolved.
  void keep(const at::Tensor& kept) {
    const std::int64_t frame = kernels::bordered_values<T>(size_.picture());
    for (std::int64_t clip = 0; clip < size_.batch; ++clip) {
      for (std::int64_t i = 0; i < kConvHistory; ++i)
        kernels::leave_frame<T>(size_.picture(), entered(clip) + (size_.frames - kConvHistory + i) * frame,
                                frame_values<T>(kept, clip, i));
    }
  }

  void convolve(const nn::Conv& conv, const std::vector<FrameRef>& skip, const at::Tensor& y) {
    kernels::FrameConv<T> product = {
        .shape = size_.shape(), .weight = stored(conv.weight), .bias = stored(conv.bias)};
    product.skip.resize(skip.size());
    for (std::int64_t clip = 0; clip < size_.batch; ++clip) {
      product.x = entered(clip);
      product.y = frame_values<T>(y, clip, 0);
      std::transform(skip.begin(), skip.end(), product.skip.begin(),
                     [&](const FrameRef& frame) { return frame_values<const T>(frame, clip); });
      kernels::convolve(product, bytes() + memory_.frames);
    }
  }

 private:
  std::byte* bytes() { return static_cast<std::byte*>(scratch_.data_ptr()); }
  T* entered(std::int64_t clip) { return reinterpret_cast<T*>(bytes() + clip * memory_.frames_of_clip); }

  ConvSize size_;
  ConvMemory memory_;
  at::Tensor scratch_;
};

}  // namespace

std::int64_t TimeConv::frames_before() const {
  if (history_.defined()) return kConvHistory;
  return config_.lead + (config_.causal ? kConvHistory : kConvTaps / 2);
}

std::int64_t TimeConv::frames_behind(Last last) const {
  return last == Last::yes && !config_.causal ? kConvTaps / 2 : 0;
}

std::int64_t TimeConv::frames_out(std::int64_t n, Last last) const {
  if (n == 0 && (last == Last::no || !history_.defined())) return 0;
  return std::max<std::int64_t>(frames_before() + n + frames_behind(last) - kConvHistory, 0);
}

// What is convolved: the history, or copies of the first frame; x; perhaps a copy of the last frame.
std::vector<EnteringRef> TimeConv::incoming(const at::Tensor& x, Last last) const {
  const Entry of_history = config_.history == History::raw ? config_.entry : Entry::as_is;
  std::vector<EnteringRef> frames;
  for (std::int64_t i = 0; i < frames_before(); ++i)
    frames.push_back(history_.defined() ? EnteringRef{{history_, i}, of_history}
                                        : EnteringRef{{x, 0}, config_.entry});
  for (std::int64_t i = 0; i < frame_count(x); ++i) frames.push_back({{x, i}, config_.entry});
  for (std::int64_t i = 0; i < frames_behind(last); ++i) frames.push_back(frames.back());
  return frames;
}

// The last two frames as they came.  Copies: a view would keep the whole piece.
at::Tensor TimeConv::last_given(const at::Tensor& x) const {
  at::Tensor kept = empty_frames(x, x.size(1), kConvHistory);
  const std::int64_t n = std::min(frame_count(x), kConvHistory);
  if (n < kConvHistory) kept.narrow(2, 0, 1).copy_(last_frames(history_.defined() ? history_ : x, 1));
  kept.narrow(2, kConvHistory - n, n).copy_(last_frames(x, n));
  return kept;
}

at::Tensor TimeConv::push(at::Tensor x, Last last, const std::vector<FrameRef>& skip) {
  if (frame_count(x) == 0 && (last == Last::no || !history_.defined())) return {};
  if (x.defined()) x = as_frames(x);
  const at::Tensor& like = x.defined() ? x : history_;
  return like.scalar_type() == at::kFloat ? run<float>(std::move(x), last, skip)
                                          : run<kernels::Bf16>(std::move(x), last, skip);
}

ConvSize TimeConv::size_of(const at::Tensor& like, std::size_t frames) const {
  return {.batch = like.size(0),
          .frames = static_cast<std::int64_t>(frames),
          .height = like.size(3),
          .width = like.size(4),
          .in = conv_->weight.size(1),
          .out = conv_->weight.size(0),
          .padding = config_.padding};
}

template <typename T>
at::Tensor TimeConv::run(at::Tensor x, Last last, const std::vector<FrameRef>& skip) {
  std::vector<EnteringRef> frames = incoming(x, last);
  at::Tensor like = frames.back().frame.frames;
  const ConvSize size = size_of(like, frames.size());
  check(size);
  Pass<T> pass(size, like.scalar_type());
  pass.enter(frames);
  frames.clear();
  if (last == Last::yes) {
    history_ = at::Tensor();
  } else if (config_.history == History::raw) {
    history_ = last_given(x);
  } else {
    at::Tensor kept = empty_frames(like, size.in, kConvHistory);
    pass.keep(kept);
    history_ = kept;
  }
  if (size.frames_out() == 0) return {};
  const at::TensorOptions options = like.options().memory_format(at::MemoryFormat::ChannelsLast3d);
  x = like = at::Tensor();
  at::Tensor y = at::empty({size.batch, size.out, size.frames_out(), size.height, size.width}, options);
  pass.convolve(*conv_, skip, y);
  return y;
}

std::int64_t TimeConv::state_bytes() const {
  return bytes_of(history_);
}

}  // namespace sluice::ltx2
