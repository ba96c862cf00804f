#include "models/ltx2/upsampler/clip_conv.h"

#include "kernels/bordered_frames.h"
#include "kernels/frame_conv.h"
#include "kernels/scratch.h"
#include "kernels/widen.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kTaps = 3;  // along rows and columns
// Positions of a piece, at least: every piece packs all weights again, which fewer would show.
constexpr std::int64_t kPiecePositions = 4096;
constexpr std::int64_t kAlignment = 64;  // bytes

kernels::BorderedPicture picture_of(const ClipConvSize& size) {
  return {.height = size.height,
          .width = size.width,
          .channels = size.in,
          .columns = kTaps / 2,
          .rows = kTaps / 2};
}

kernels::FrameConvShape shape_of(const ClipConvSize& size, std::int64_t frames) {
  return {.frames = frames,
          .height = size.height,
          .width = size.width,
          .in = size.in,
          .out = size.out,
          .kernel = {size.taps_in_time, kTaps, kTaps}};
}

ClipConvSize size_of(const nn::Conv& conv, const at::Tensor& clip) {
  const at::Tensor& weight = conv.weight;
  return {.frames = clip.size(0),
          .height = clip.size(1),
          .width = clip.size(2),
          .in = weight.size(1),
          .out = weight.size(0),
          .taps_in_time = weight.dim() == 5 ? weight.size(2) : 1};
}

kernels::StoredValues values_of(const at::Tensor& x) {
  return kernels::stored_values(kernels::Matrix(x.view({x.size(0), -1})));
}

template <typename T>
std::int64_t entered_bytes(const ClipConvSize& size) {
  const std::int64_t frames = size.piece() + size.taps_in_time - 1;
  const std::int64_t bytes =
      frames * kernels::bordered_values<T>(picture_of(size)) * static_cast<std::int64_t>(sizeof(T));
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename T>
std::int64_t scratch_bytes(const ClipConvSize& size) {
  return entered_bytes<T>(size) +
         kernels::frame_conv_scratch<T>(shape_of(size, size.piece()), at::get_num_threads());
}

template <typename T>
class Pass {
 public:
  Pass(const nn::Conv& conv, const at::Tensor& clip)
      : clip_(clip),
        size_(size_of(conv, clip)),
        weight_(conv.weight.contiguous()),
        bias_(conv.bias),
        block_(kernels::scratch({scratch_bytes<T>(size_)}, at::kByte)) {}

  const ClipConvSize& size() const { return size_; }

  void run(std::int64_t first, std::int64_t frames, const at::Tensor& y) {
    enter(first, frames);
    kernels::FrameConv<T> conv = {.shape = shape_of(size_, frames),
                                  .x = entered(0),
                                  .weight = values_of(weight_),
                                  .bias = values_of(bias_),
                                  .y = static_cast<T*>(y.data_ptr())};
    kernels::convolve(conv, bytes() + entered_bytes<T>(size_));
  }

 private:
  std::byte* bytes() const { return static_cast<std::byte*>(block_.data_ptr()); }
  T* entered(std::int64_t frame) const {
    return reinterpret_cast<T*>(bytes()) + frame * kernels::bordered_values<T>(picture_of(size_));
  }

  // Frames [first - reach, first + frames + reach) of the clip; those that it does not have are zeros.
  void enter(std::int64_t first, std::int64_t frames) const {
    const std::int64_t reach = size_.taps_in_time / 2, values = size_.height * size_.width * size_.in;
    const std::int64_t begin = std::max<std::int64_t>(first - reach, 0);
    const std::int64_t end = std::min(first + frames + reach, size_.frames);
    const std::int64_t before = begin - (first - reach);
    std::vector<kernels::EnteringFrame<T>> inside;
    for (std::int64_t frame = begin; frame < end; ++frame)
      inside.push_back({static_cast<const T*>(clip_.const_data_ptr()) + frame * values});
    kernels::enter_frames<T>(picture_of(size_), inside, entered(before));
    std::fill(entered(0), entered(before), T{});
    std::fill(entered(before + end - begin), entered(frames + 2 * reach), T{});
  }

  const at::Tensor& clip_;
  ClipConvSize size_;
  at::Tensor weight_, bias_;
  at::Tensor block_;
};

// target(first, frames): where they go.
template <typename T, typename Target>
void run_pieces(const nn::Conv& conv, const at::Tensor& clip, const Target& target, const ClipPiece& done) {
  Pass<T> pass(conv, clip);
  const std::int64_t frames = pass.size().frames, piece = pass.size().piece();
  for (std::int64_t first = 0; first < frames; first += piece) {
    const std::int64_t count = std::min(piece, frames - first);
    const at::Tensor y = target(first, count);
    pass.run(first, count, y);
    if (done) done(first, y);
  }
}

template <typename Target>
void run_in_dtype(const nn::Conv& conv, const at::Tensor& clip, const Target& target, const ClipPiece& done) {
  switch (clip.scalar_type()) {
    case at::kFloat:
      return run_pieces<float>(conv, clip, target, done);
    case at::kBFloat16:
      return run_pieces<kernels::Bf16>(conv, clip, target, done);
    default:
      throw Error(ErrorKind::internal, fmt::format("latent upsampler: computes in f32 and bf16, not in {}",
                                                   at::toString(clip.scalar_type())));
  }
}

at::Tensor empty_frames(const nn::Conv& conv, const at::Tensor& clip, std::int64_t frames) {
  return at::empty({frames, clip.size(1), clip.size(2), conv.weight.size(0)}, clip.options());
}

}  // namespace

std::int64_t ClipConvSize::piece() const {
  const std::int64_t positions = height * width;
  return std::clamp<std::int64_t>((kPiecePositions + positions - 1) / positions, 1, frames);
}

at::Tensor clip_conv(const nn::Conv& conv, const at::Tensor& clip) {
  const at::Tensor y = empty_frames(conv, clip, clip.size(0));
  run_in_dtype(conv, clip, [&](std::int64_t first, std::int64_t count) { return y.narrow(0, first, count); },
               {});
  return y;
}

void clip_conv_pieces(const nn::Conv& conv, const at::Tensor& clip, const ClipPiece& done) {
  const at::Tensor y = empty_frames(conv, clip, size_of(conv, clip).piece());
  run_in_dtype(
      conv, clip, [&](std::int64_t, std::int64_t count) { return y.narrow(0, 0, count); }, done);
}

std::int64_t clip_conv_scratch(const ClipConvSize& size, at::ScalarType dtype) {
  return dtype == at::kFloat ? scratch_bytes<float>(size) : scratch_bytes<kernels::Bf16>(size);
}

}  // namespace sluice::ltx2
