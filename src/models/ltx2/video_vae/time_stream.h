#pragma once
// The layers of decoder and encoder as streams over time: frames go in piece by piece, those that are
// determined come out, and a small state carries what a later frame still needs.  The result is that of the
// whole clip: every layer is pointwise in time, a convolution of three taps with copies of the border frame,
// or a shuffle of channels into time.
//
// Frames lie as frame_layout.h says, from end to end.  State never grows with the clip.

#include "models/ltx2/video_vae/blocks.h"
#include "models/ltx2/video_vae/config.h"
#include "models/ltx2/video_vae/encoder_config.h"
#include "models/ltx2/video_vae/time_conv.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sluice::ltx2 {

// The path beside one or two convolutions: frames wait until theirs come out.  At most two wait, and the
// first convolution remembers these anyway, so that nothing is kept here but their number.
class SkipPath {
 public:
  // `lead`: as many copies of the first frame come before it (TimeConvConfig::lead).
  explicit SkipPath(std::int64_t lead = 0) : lead_(lead) {}

  // `history`: the first convolution's before this push, raw; `x`: what was pushed; `out`: frames that come
  // out.  Those that belong to them.
  std::vector<FrameRef> take(const at::Tensor& history, const at::Tensor& x, std::int64_t out);

 private:
  std::int64_t lead_;
  std::int64_t waiting_ = 0;
};

// One step of the network; stages in a row make it all.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual at::Tensor push(const at::Tensor& x, Last last) = 0;
  virtual std::int64_t state_bytes() const = 0;
  virtual std::int64_t widest()
      const = 0;  // channels of the widest tensor made, at the input's rate and size
  virtual std::int64_t stride_t() const { return 1; }  // of an upsampler: frames out for one in
};

class ConvStage final : public Stage {
 public:
  ConvStage(const nn::Conv& conv, TimeConvConfig config);
  at::Tensor push(const at::Tensor& x, Last last) override { return conv_.push(x, last); }
  std::int64_t state_bytes() const override { return conv_.state_bytes(); }
  std::int64_t widest() const override { return widest_; }

 private:
  TimeConv conv_;
  std::int64_t widest_;
};

// x + conv2(silu(norm(conv1(silu(norm(x))))))
class ResidualStage final : public Stage {
 public:
  ResidualStage(const VideoResidualBlock& block, TimeConvConfig config);
  at::Tensor push(const at::Tensor& x, Last last) override;
  std::int64_t state_bytes() const override { return conv1_.state_bytes() + conv2_.state_bytes(); }
  std::int64_t widest() const override { return channels_; }

 private:
  TimeConv conv1_, conv2_;
  SkipPath skip_;
  std::int64_t channels_;
};

// Convolution, then channels to (time, height, width); the first stride_t - 1 frames of the clip are dropped.
class UpsampleStage final : public Stage {
 public:
  UpsampleStage(const nn::Conv& conv, const UpBlockConfig& block, TimeConvConfig config);
  at::Tensor push(const at::Tensor& x, Last last) override;
  std::int64_t state_bytes() const override { return conv_.state_bytes(); }
  std::int64_t widest() const override { return block_.channels * block_.shuffle(); }
  std::int64_t stride_t() const override { return block_.stride_t; }

 private:
  TimeConv conv_;
  UpBlockConfig block_;
  std::int64_t to_drop_;
  SkipPath skip_;  // only with block.residual
};

// Convolution, then groups of neighbours in (time, height, width) to channels, beside the same of the input,
// whose channels are averaged.  Before the clip stand stride_t - 1 copies of its first frame; frames wait
// until their group is whole.
class DownsampleStage final : public Stage {
 public:
  DownsampleStage(const nn::Conv& conv, const DownBlockConfig& block, TimeConvConfig config);
  // Error(internal) if the clip ends with a part of a group.
  at::Tensor push(const at::Tensor& x, Last last) override;
  std::int64_t state_bytes() const override;
  std::int64_t widest() const override { return std::max(block_.channels, block_.conv_channels()); }

 private:
  TimeConv conv_;
  DownBlockConfig block_;
  SkipPath skip_;
  std::vector<FrameRef> waiting_;  // convolved, fewer than a group; each a tensor of its own
};

}  // namespace sluice::ltx2
