#include "models/ltx2/video_vae/time_stream.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kTaps = 3;  // of every convolution over time
constexpr double kPixelNormEps =
    1e-8;                          // PerChannelRMSNorm's default; resnet_norm_eps belongs to another norm
constexpr std::int64_t kTime = 2;  // axis

// Channels last: faster for the convolutions (bench: bf16 by 10 to 40 %) and for the norm over channels.
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
  if (n) enter(buffer.narrow(kTime, front, n), x, config_.entry);
  buffer.narrow(kTime, 0, front).copy_(history_.defined() ? history_ : buffer.narrow(kTime, front, 1));
  if (back) buffer.narrow(kTime, front + n, back).copy_(buffer.narrow(kTime, front + n - 1, 1));
  return buffer;
}

at::Tensor TimeConv::convolve(const at::Tensor& buffer) const {
  if (config_.padding == SpatialPadding::zeros) return nn::conv(*conv_, buffer, {.padding = {0, 1, 1}});
  at::Tensor padded = at::pad(buffer, {1, 1, 1, 1, 0, 0}, "reflect");
  return nn::conv(*conv_, padded.contiguous(at::MemoryFormat::ChannelsLast3d));
}

at::Tensor TimeConv::push(const at::Tensor& x, Last last) {
  if (frame_count(x) == 0 && !history_.defined()) return {};
  at::Tensor buffer = with_history(x, last);
  const std::int64_t kept = std::min(buffer.size(kTime), kTaps - 1);
  // A copy: a view would keep the whole buffer.
  history_ =
      last == Last::yes ? at::Tensor() : copy_of(buffer.narrow(kTime, buffer.size(kTime) - kept, kept));
  return buffer.size(kTime) < kTaps ? at::Tensor() : convolve(buffer);
}

std::int64_t TimeConv::state_bytes() const {
  return bytes_of(history_);
}

void FrameQueue::push(const at::Tensor& frames) {
  if (frame_count(frames)) waiting_.push_back(frames);
}

std::vector<at::Tensor> FrameQueue::pop(std::int64_t frames) {
  std::vector<at::Tensor> popped;
  while (frames > 0) {
    at::Tensor& oldest = waiting_.front();
    const std::int64_t n = std::min(frames, oldest.size(kTime));
    popped.push_back(oldest.narrow(kTime, 0, n));
    oldest = oldest.narrow(kTime, n, oldest.size(kTime) - n);
    if (oldest.size(kTime) == 0) waiting_.pop_front();
    frames -= n;
  }
  for (at::Tensor& left : waiting_) left = copy_of(left);
  return popped;
}

std::int64_t FrameQueue::state_bytes() const {
  std::int64_t bytes = 0;
  for (const at::Tensor& frames : waiting_) bytes += bytes_of(frames);
  return bytes;
}

ConvStage::ConvStage(const nn::Conv& conv, TimeConvConfig config)
    : conv_(conv, config), widest_(std::max(conv.weight.size(0), conv.weight.size(1))) {}

ResidualStage::ResidualStage(const VideoResidualBlock& block, TimeConvConfig config)
    : conv1_(block.conv1, config), conv2_(block.conv2, config), channels_(block.conv1.weight.size(0)) {}

at::Tensor ResidualStage::push(const at::Tensor& x, Last last) {
  at::Tensor h = conv2_.push(conv1_.push(x, last), last);
  skip_.push(x);
  std::int64_t done = 0;
  for (const at::Tensor& frames : skip_.pop(frame_count(h))) {
    h.narrow(kTime, done, frames.size(kTime)).add_(frames);
    done += frames.size(kTime);
  }
  return h;
}

std::int64_t ResidualStage::state_bytes() const {
  return conv1_.state_bytes() + conv2_.state_bytes() + skip_.state_bytes();
}

UpsampleStage::UpsampleStage(const nn::Conv& conv, const UpBlockConfig& block, TimeConvConfig config)
    : conv_(conv, config), block_(block), to_drop_(block.stride_t - 1) {}

at::Tensor UpsampleStage::push(const at::Tensor& x, Last last) {
  at::Tensor h = conv_.push(x, last);
  if (block_.residual) skip_.push(x);
  if (!h.defined()) return {};
  at::Tensor out = depth_to_space(h, block_.stride_t, block_.stride_h, block_.stride_w);
  if (block_.residual) add_skip(out, frame_count(h));
  const std::int64_t dropped = std::min(to_drop_, frame_count(out));
  to_drop_ -= dropped;
  return out.narrow(kTime, dropped, frame_count(out) - dropped);
}

void UpsampleStage::add_skip(at::Tensor& out, std::int64_t frames_in) {
  const std::int64_t repeats = block_.channels * block_.shuffle() / block_.in_channels;
  std::int64_t done = 0;
  for (const at::Tensor& frames : skip_.pop(frames_in)) {
    at::Tensor shuffled = depth_to_space(frames, block_.stride_t, block_.stride_h, block_.stride_w);
    at::Tensor part = out.narrow(kTime, done, frame_count(shuffled));
    part.add_(shuffled.repeat({1, repeats, 1, 1, 1}));  // the whole list of channels again and again
    done += frame_count(shuffled);
  }
}

std::int64_t UpsampleStage::state_bytes() const {
  return conv_.state_bytes() + skip_.state_bytes();
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
