#pragma once
// Frames as decoder and encoder hold them from end to end: [batch, channels, n, height, width] with the
// channels of a position side by side, a row's positions behind each other, and rows behind each other.  An
// undefined tensor stands for no frames.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sluice::ltx2 {

std::int64_t frame_count(const at::Tensor& frames);

// So many, of `channels`, with any content; other sizes and the dtype as in `like`.
at::Tensor empty_frames(const at::Tensor& like, std::int64_t channels, std::int64_t frames);

// The tensor itself where it lies so; parts over time do.
at::Tensor as_frames(const at::Tensor& x);

struct FrameRef {  // keeps its tensor
  at::Tensor frames;
  std::int64_t index = 0;
};

template <typename T>
T* frame_values(const at::Tensor& frames, std::int64_t clip, std::int64_t index) {
  return static_cast<T*>(frames.data_ptr()) + clip * frames.stride(0) + index * frames.stride(2);
}
template <typename T>
T* frame_values(const FrameRef& frame, std::int64_t clip) {
  return frame_values<T>(frame.frames, clip, frame.index);
}

// [b, (c p_t p_h p_w), t, h, w] -> [b, c, t · p_t, h · p_h, w · p_w].  `skip`, if it is there, holds for each
// frame of x one of [b, (k p_t p_h p_w), 1, h, w] which is shuffled too and added, its k channels again and
// again.
struct Shuffle {
  std::int64_t t = 1, h = 1, w = 1;
  std::int64_t places() const { return t * h * w; }
};
at::Tensor depth_to_space(const at::Tensor& x, Shuffle shuffle, const std::vector<FrameRef>& skip = {});

// The decoder's exit: [b, (c p_w p_h), t, h, w] -> [b, c, t, h · p, w · p], contiguous.  The column offset is
// the slow one here.
at::Tensor unpatchify(const at::Tensor& x, std::int64_t patch);

// The encoder's way: frames in groups of p_t, [b, c, 1, h · p_h, w · p_w] each
// -> [b, (c p_t p_h p_w), groups, h, w], to which the same of `skip` is added, as many frames, with every
// `mean_of` neighbouring channels as their mean.  Rounded once.  Without frames: undefined.
at::Tensor space_to_depth(const std::vector<FrameRef>& frames, Shuffle shuffle,
                          const std::vector<FrameRef>& skip, std::int64_t mean_of);

// The encoder's entry, unpatchify() the other way: [b, c, t, h · p, w · p], f32 in any layout, to frames as
// they lie here, [b, (c p_w p_h), t, h, w] in f32 or bf16.
void patchify(const at::Tensor& pixels, std::int64_t patch, const at::Tensor& to);

}  // namespace sluice::ltx2
