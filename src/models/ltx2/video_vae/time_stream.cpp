#include "models/ltx2/video_vae/time_stream.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kTaps = 3;  // of every convolution over time
constexpr std::int64_t kTime = 2;  // axis
// PerChannelRMSNorm's default; resnet_norm_eps is another norm's.
constexpr double kPixelNormEps = 1e-8;

// Channels last, for the norm over channels and for the convolutions: at 128 to 512 channels these took a
// tenth less time in f32 and a quarter less in bf16 than with channels first (two cores with AVX-512,
// LibTorch 2.13).
at::Tensor empty_frames(const at::Tensor& like, std::int64_t frames) {
  std::vector<std::int64_t> shape = like.sizes().vec();
  shape[kTime] = frames;
  return at::empty(shape, like.options().memory_format(at::MemoryFormat::ChannelsLast3d));
}

at::Tensor copy_of(const at::Tensor& frames) {
  return frames.clone(at::MemoryFormat::ChannelsLast3d);
}

std::int64_t bytes_of(const at::Tensor& x) {
  return x.defined() ? static_cast<std::int64_t>(x.nbytes()) : 0;
}

at::Tensor last_frames(const at::Tensor& x, std::int64_t count) {
  return x.narrow(kTime, x.size(kTime) - count, count);
}

TimeConvConfig with(TimeConvConfig config, History history) {
  config.history = history;
  return config;
}

void enter(at::Tensor to, const at::Tensor& x, Entry entry) {
  if (entry == Entry::as_is) {
    to.copy_(x);
    return;
  }
  for (std::int64_t t = 0; t < x.size(kTime); t++)  // frame by frame, so that temporaries stay small
    nn::pixel_norm_silu_into(to.select(kTime, t), x.select(kTime, t), kPixelNormEps);
}

}  // namespace

std::int64_t frame_count(const at::Tensor& frames) {
  return frames.defined() ? frames.size(kTime) : 0;
}

at::Tensor TimeConv::with_history(const at::Tensor& x, Last last) const {
  const std::int64_t n = frame_count(x);
  const std::int64_t copies = config_.causal ? kTaps - 1 : kTaps / 2;
  const std::int64_t front = history_.defined() ? history_.size(kTime) : copies;
  const std::int64_t back = last == Last::yes && !config_.causal ? kTaps / 2 : 0;
  at::Tensor buffer = empty_frames(n ? x : history_, front + n + back);
  at::Tensor before = buffer.narrow(kTime, 0, front);
  if (n) enter(buffer.narrow(kTime, front, n), x, config_.entry);
  if (history_.defined()) {
    enter(before, history_, config_.history == History::raw ? config_.entry : Entry::as_is);
  } else {
    before.copy_(buffer.narrow(kTime, front, 1));
  }
  if (back) buffer.narrow(kTime, front + n, back).copy_(buffer.narrow(kTime, front + n - 1, 1));
  return buffer;
}

at::Tensor TimeConv::convolve(const at::Tensor& buffer) const {
  if (config_.padding == SpatialPadding::zeros) return nn::conv(*conv_, buffer, {.padding = {0, 1, 1}});
  at::Tensor padded = at::pad(buffer, {1, 1, 1, 1, 0, 0}, "reflect");
  return nn::conv(*conv_, padded.contiguous(at::MemoryFormat::ChannelsLast3d));
}

// The last two frames.  Copies: a view would keep the whole piece.
at::Tensor TimeConv::kept(const at::Tensor& buffer, const at::Tensor& x) const {
  if (config_.history == History::entered) return copy_of(last_frames(buffer, kTaps - 1));
  if (frame_count(x) >= kTaps - 1) return copy_of(last_frames(x, kTaps - 1));
  return at::cat({last_frames(history_.defined() ? history_ : x, 1), x}, kTime);  // x has one frame
}

at::Tensor TimeConv::push(at::Tensor x, Last last) {
  if (frame_count(x) == 0 && !history_.defined()) return {};
  at::Tensor buffer = with_history(x, last);
  history_ = last == Last::yes ? at::Tensor() : kept(buffer, x);
  x = at::Tensor();
  return buffer.size(kTime) < kTaps ? at::Tensor() : convolve(buffer);
}

std::int64_t TimeConv::state_bytes() const {
  return bytes_of(history_);
}

void SkipPath::push(const at::Tensor& history, const at::Tensor& x, std::int64_t out, const Visit& visit) {
  const std::int64_t old = std::min(out, waiting_);
  if (old) visit(0, last_frames(history, waiting_).narrow(kTime, 0, old));
  if (out > old) visit(old, x.narrow(kTime, 0, out - old));
  waiting_ += frame_count(x) - out;
}

ConvStage::ConvStage(const nn::Conv& conv, TimeConvConfig config)
    : conv_(conv, config), widest_(std::max(conv.weight.size(0), conv.weight.size(1))) {}

ResidualStage::ResidualStage(const VideoResidualBlock& block, TimeConvConfig config)
    : conv1_(block.conv1, with(config, History::raw)),
      conv2_(block.conv2, with(config, History::entered)),
      channels_(block.conv1.weight.size(0)) {}

at::Tensor ResidualStage::push(const at::Tensor& x, Last last) {
  at::Tensor history = conv1_.history();
  at::Tensor h = conv1_.push(x, last);
  h = conv2_.push(std::move(h), last);
  skip_.push(history, x, frame_count(h), [&](std::int64_t first, const at::Tensor& frames) {
    h.narrow(kTime, first, frame_count(frames)).add_(frames);
  });
  return h;
}

UpsampleStage::UpsampleStage(const nn::Conv& conv, const UpBlockConfig& block, TimeConvConfig config)
    : conv_(conv, config), block_(block), to_drop_(block.stride_t - 1) {}

at::Tensor UpsampleStage::push(const at::Tensor& x, Last last) {
  at::Tensor history = conv_.history();
  at::Tensor h = conv_.push(x, last);
  const std::int64_t frames = frame_count(h);
  at::Tensor out =
      frames ? depth_to_space(h, block_.stride_t, block_.stride_h, block_.stride_w) : at::Tensor();
  if (block_.residual)
    skip_.push(history, x, frames,
               [&](std::int64_t first, const at::Tensor& skipped) { add_skip(out, first, skipped); });
  const std::int64_t dropped = std::min(to_drop_, frame_count(out));
  to_drop_ -= dropped;
  return out.defined() ? out.narrow(kTime, dropped, frame_count(out) - dropped) : out;
}

void UpsampleStage::add_skip(at::Tensor& out, std::int64_t first, const at::Tensor& frames) const {
  const std::int64_t repeats = block_.channels * block_.shuffle() / block_.in_channels;
  at::Tensor shuffled = depth_to_space(frames, block_.stride_t, block_.stride_h, block_.stride_w);
  at::Tensor part = out.narrow(kTime, first * block_.stride_t, frame_count(shuffled));
  part.add_(shuffled.repeat({1, repeats, 1, 1, 1}));  // the whole list of channels again and again
}

at::Tensor depth_to_space(const at::Tensor& x, std::int64_t p_t, std::int64_t p_h, std::int64_t p_w) {
  const std::int64_t b = x.size(0), c = x.size(1) / (p_t * p_h * p_w), t = x.size(2), h = x.size(3),
                     w = x.size(4);
  at::Tensor out = at::empty({b, c, t * p_t, h * p_h, w * p_w},
                             x.options().memory_format(at::MemoryFormat::ChannelsLast3d));
  at::Tensor source = x.unflatten(1, {c, p_t, p_h, p_w}).permute({0, 1, 5, 2, 6, 3, 7, 4});
  out.unflatten(4, {w, p_w}).unflatten(3, {h, p_h}).unflatten(2, {t, p_t}).copy_(source);
  return out;
}

at::Tensor unpatchify(const at::Tensor& x, std::int64_t patch) {
  const std::int64_t c = x.size(1) / (patch * patch);
  at::Tensor source = x.unflatten(1, {c, patch, patch}).permute({0, 1, 4, 5, 3, 6, 2});  // b c t h q w r
  return source.reshape({x.size(0), c, x.size(2), x.size(3) * patch, x.size(4) * patch});
}

}  // namespace sluice::ltx2
