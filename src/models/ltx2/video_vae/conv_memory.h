#pragma once
// What a convolution works in: its frames with their borders, and what products need.  One
// block, used again by the next convolution (kernels/scratch.h).  From shapes alone: a run uses what its
// plan counted.

#include "kernels/bordered_frames.h"
#include "kernels/frame_conv.h"
#include "models/ltx2/video_vae/config.h"

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace sluice::ltx2 {

inline constexpr std::int64_t kConvTaps = 3;     // of every convolution, along each axis
inline constexpr std::int64_t kConvHistory = 2;  // frames one remembers

struct ConvSize {
  std::int64_t batch = 1;
  std::int64_t frames = 0;  // that are convolved: kConvHistory more than come out
  std::int64_t height = 0, width = 0;
  std::int64_t in = 0, out = 0;
  SpatialPadding padding = SpatialPadding::zeros;

  std::int64_t positions() const { return batch * height * width; }  // of one frame of each clip
  std::int64_t frames_out() const { return frames > kConvHistory ? frames - kConvHistory : 0; }
  kernels::BorderedPicture picture() const;
  kernels::FrameConvShape shape() const;
};

struct ConvMemory {                 // bytes
  std::int64_t frames_of_clip = 0;  // bordered, of one clip of the batch
  std::int64_t frames = 0;
  std::int64_t products = 0;

  std::int64_t all() const { return frames + products; }
};

// `dtype`: what is computed in; on as many threads as LibTorch has.
ConvMemory conv_memory(const ConvSize& size, at::ScalarType dtype);

}  // namespace sluice::ltx2
