#include "models/ltx2/video_vae/time_stream.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

TimeConvConfig with(TimeConvConfig config, History history) {
  config.history = history;
  return config;
}

}  // namespace

std::vector<FrameRef> SkipPath::take(const at::Tensor& history, const at::Tensor& x, std::int64_t out) {
  std::vector<FrameRef> frames;
  const std::int64_t old = std::min(out, waiting_);
  for (std::int64_t i = 0; i < old; ++i) frames.push_back({history, frame_count(history) - waiting_ + i});
  for (std::int64_t i = 0; i < out - old; ++i) frames.push_back({x, i});
  waiting_ += frame_count(x) - out;
  return frames;
}

ConvStage::ConvStage(const nn::Conv& conv, TimeConvConfig config)
    : conv_(conv, config), widest_(std::max(conv.weight.size(0), conv.weight.size(1))) {}

ResidualStage::ResidualStage(const VideoResidualBlock& block, TimeConvConfig config)
    : conv1_(block.conv1, with(config, History::raw)),
      conv2_(block.conv2, with(config, History::entered)),
      channels_(block.conv1.weight.size(0)) {}

at::Tensor ResidualStage::push(const at::Tensor& x, Last last) {
  const at::Tensor history = conv1_.history();
  at::Tensor h = conv1_.push(x, last);
  const std::vector<FrameRef> skip = skip_.take(history, x, conv2_.frames_out(frame_count(h), last));
  return conv2_.push(std::move(h), last, skip);
}

UpsampleStage::UpsampleStage(const nn::Conv& conv, const UpBlockConfig& block, TimeConvConfig config)
    : conv_(conv, config), block_(block), to_drop_(block.stride_t - 1) {}

at::Tensor UpsampleStage::push(const at::Tensor& x, Last last) {
  const at::Tensor history = conv_.history();
  at::Tensor h = conv_.push(x, last);
  const std::int64_t frames = frame_count(h);
  std::vector<FrameRef> skip;  // the history holds them as they came
  if (block_.residual) skip = skip_.take(history, x, frames);
  if (frames == 0) return {};
  at::Tensor out =
      depth_to_space(h, {.t = block_.stride_t, .h = block_.stride_h, .w = block_.stride_w}, skip);
  const std::int64_t dropped = std::min(to_drop_, frame_count(out));
  to_drop_ -= dropped;
  return out.narrow(2, dropped, frame_count(out) - dropped);
}

}  // namespace sluice::ltx2
