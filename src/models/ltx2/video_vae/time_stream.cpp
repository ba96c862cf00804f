#include "models/ltx2/video_vae/time_stream.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::ltx2 {
namespace {

TimeConvConfig with(TimeConvConfig config, History history) {
  config.history = history;
  return config;
}

// A copy: a view would keep the whole piece.
FrameRef alone(const FrameRef& frame) {
  return {frame.frames.narrow(2, frame.index, 1).clone(at::MemoryFormat::ChannelsLast3d), 0};
}

// Whose history the skip path shares, with copies of the first frame to fill the first group.
TimeConvConfig before_groups(TimeConvConfig config, std::int64_t group) {
  config.history = History::raw;
  config.lead = group - 1;
  return config;
}

}  // namespace

std::vector<FrameRef> SkipPath::take(const at::Tensor& history, const at::Tensor& x, std::int64_t out) {
  std::vector<FrameRef> frames;
  const std::int64_t lead = frame_count(x) ? std::exchange(lead_, 0) : 0;
  const std::int64_t old = std::min(out, waiting_);
  for (std::int64_t i = 0; i < old; ++i) frames.push_back({history, frame_count(history) - waiting_ + i});
  for (std::int64_t i = 0; i < out - old; ++i) frames.push_back({x, std::max<std::int64_t>(i - lead, 0)});
  waiting_ += lead + frame_count(x) - out;
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

DownsampleStage::DownsampleStage(const nn::Conv& conv, const DownBlockConfig& block, TimeConvConfig config)
    : conv_(conv, before_groups(config, block.stride_t)), block_(block), skip_(block.stride_t - 1) {}

at::Tensor DownsampleStage::push(const at::Tensor& x, Last last) {
  const at::Tensor history = conv_.history();
  const at::Tensor convolved = conv_.push(x, last);
  std::vector<FrameRef> frames = std::exchange(waiting_, {});
  for (std::int64_t i = 0; i < frame_count(convolved); ++i) frames.push_back({convolved, i});
  const std::size_t rest = frames.size() % static_cast<std::size_t>(block_.stride_t);
  if (last == Last::yes && rest)
    throw Error(
        ErrorKind::internal,
        fmt::format("video encoder: the clip ends with {} of a group of {} frames", rest, block_.stride_t));
  for (std::size_t i = frames.size() - rest; i < frames.size(); ++i) waiting_.push_back(alone(frames[i]));
  frames.resize(frames.size() - rest);
  const std::vector<FrameRef> skip = skip_.take(history, x, static_cast<std::int64_t>(frames.size()));
  return space_to_depth(frames, {.t = block_.stride_t, .h = block_.stride_h, .w = block_.stride_w}, skip,
                        block_.mean_of());
}

std::int64_t DownsampleStage::state_bytes() const {
  std::int64_t bytes = conv_.state_bytes();
  for (const FrameRef& frame : waiting_) bytes += static_cast<std::int64_t>(frame.frames.nbytes());
  return bytes;
}

}  // namespace sluice::ltx2
