#pragma once
// The decoder's layers as streams over time: frames go in piece by piece, those that are determined come out,
// and a small state carries what a later frame still needs.  The result is that of the whole clip: every
// layer is pointwise in time, a convolution of three taps with copies of the border frame, or a shuffle of
// channels into time.
//
// Frames are [batch, channels, n, height, width]; an undefined tensor stands for none.  State never grows
// with the clip.

#include "models/ltx2/video_vae/config.h"
#include "models/ltx2/video_vae/decoder.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace sluice::ltx2 {

enum class Last { no, yes };  // whether the clip ends with this piece

std::int64_t frame_count(const at::Tensor& frames);

// What happens to frames before they are convolved.
enum class Entry { as_is, normed };  // normed: pixel norm, silu

// What a convolution remembers of the last two frames: as they came, for a skip path to share, or as it
// convolves them.
enum class History { raw, entered };

struct TimeConvConfig {
  Entry entry = Entry::as_is;
  History history = History::entered;
  bool causal = false;
  SpatialPadding padding = SpatialPadding::zeros;
};

// A 3x3x3 convolution.  Causal: two copies of the first frame stand before the clip.  Otherwise one copy of
// the first frame before and one of the last behind it, so that output lags one frame until the clip ends.
class TimeConv {
 public:
  TimeConv(const nn::Conv& conv, TimeConvConfig config) : conv_(&conv), config_(config) {}

  // Lets go of x before it convolves.
  at::Tensor push(at::Tensor x, Last last);

  const at::Tensor& history() const {
    return history_;
  }  // undefined before the first frame and after the last
  std::int64_t state_bytes() const;

 private:
  at::Tensor with_history(const at::Tensor& x, Last last) const;
  at::Tensor kept(const at::Tensor& buffer, const at::Tensor& x) const;
  at::Tensor convolve(const at::Tensor& buffer) const;

  const nn::Conv* conv_;
  TimeConvConfig config_;
  at::Tensor history_;  // two frames
};

// The path beside one or two convolutions: frames wait until theirs come out.  At most two wait, and the
// first convolution remembers these anyway, so that nothing is kept here but their number.
class SkipPath {
 public:
  using Visit = std::function<void(std::int64_t first, const at::Tensor& frames)>;

  // `history`: the first convolution's before this push, raw; `x`: what was pushed; `out`: frames that came
  // out. Calls visit with the frames that belong to them, in one or two parts.
  void push(const at::Tensor& history, const at::Tensor& x, std::int64_t out, const Visit& visit);

 private:
  std::int64_t waiting_ = 0;
};

// One step of the decoder; stages in a row make the network.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual at::Tensor push(const at::Tensor& x, Last last) = 0;
  virtual std::int64_t state_bytes() const = 0;
  virtual std::int64_t widest()
      const = 0;  // channels of the widest tensor made, at the input's rate and size
  virtual std::int64_t stride_t() const { return 1; }  // frames out for one in
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
  void add_skip(at::Tensor& out, std::int64_t first, const at::Tensor& frames) const;

  TimeConv conv_;
  UpBlockConfig block_;
  std::int64_t to_drop_;
  SkipPath skip_;  // only with block.residual
};

// [b, (c p_t p_h p_w), t, h, w] -> [b, c, t · p_t, h · p_h, w · p_w]
at::Tensor depth_to_space(const at::Tensor& x, std::int64_t p_t, std::int64_t p_h, std::int64_t p_w);

// The decoder's exit: [b, (c p_w p_h), t, h, w] -> [b, c, t, h · p, w · p].  The column offset is the slow
// one here.
at::Tensor unpatchify(const at::Tensor& x, std::int64_t patch);

}  // namespace sluice::ltx2
