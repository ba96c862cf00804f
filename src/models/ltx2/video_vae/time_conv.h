#pragma once
// A convolution as a stream over time: frames go in piece by piece, those that are determined come out, and
// the last two are remembered.

#include "models/ltx2/video_vae/conv_memory.h"
#include "models/ltx2/video_vae/frame_layout.h"
#include "nn/conv.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sluice::ltx2 {

enum class Last { no, yes };  // whether the clip ends with this piece

using kernels::Entry;  // what happens to frames before they are convolved

struct EnteringRef {
  FrameRef frame;
  Entry entry = Entry::as_is;
};

// What a convolution remembers of the last two frames: as they came, for a skip path to share, or as it
// convolves them.
enum class History { raw, entered };

struct TimeConvConfig {
  Entry entry = Entry::as_is;
  History history = History::entered;
  bool causal = false;
  SpatialPadding padding = SpatialPadding::zeros;
  // Copies of the first frame that stand before the clip as frames of their own: as many more come out.
  std::int64_t lead = 0;
};

// A 3x3x3 convolution.  Causal: two copies of the first frame stand before the clip.  Otherwise one copy of
// the first frame before and one of the last behind it, so that output lags one frame until the clip ends.
class TimeConv {
 public:
  TimeConv(const nn::Conv& conv, TimeConvConfig config) : conv_(&conv), config_(config) {}

  // Lets go of x before it convolves.  `skip`: frames that are added to those that come out, or none.
  at::Tensor push(at::Tensor x, Last last, const std::vector<FrameRef>& skip = {});

  // How many come out of a push of n.
  std::int64_t frames_out(std::int64_t n, Last last) const;

  const at::Tensor& history() const {
    return history_;
  }  // undefined before the first frame and after the last
  std::int64_t state_bytes() const;

 private:
  std::int64_t frames_before() const;
  std::int64_t frames_behind(Last last) const;
  std::vector<EnteringRef> incoming(const at::Tensor& x, Last last) const;
  ConvSize size_of(const at::Tensor& like, std::size_t frames) const;
  template <typename T>
  at::Tensor run(at::Tensor x, Last last, const std::vector<FrameRef>& skip);
  at::Tensor last_given(const at::Tensor& x) const;

  const nn::Conv* conv_;
  TimeConvConfig config_;
  at::Tensor history_;  // two frames
};

}  // namespace sluice::ltx2
