#pragma once
// Where tokens lie in time and space, and the four rotary tables made from that.  Tables do not change over
// the steps of a generation: build them once.

#include "models/ltx2/transformer/config.h"
#include "nn/rope.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::ltx2 {

struct VideoGrid {  // in latents
  std::int64_t frames = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t tokens() const { return frames * height * width; }
};

// Frames that stand beside the grid: given ones whose tokens are appended to it.
struct KeyframePlace {
  std::int64_t pixel_frame = 0;   // of the clip, where the first of them belongs
  std::int64_t pixel_frames = 1;  // that they are; one spans one frame of the clip, not a latent's
};

// Bounds [start, end) of each token, f32 [1, 3, tokens, 2]: seconds, pixel rows, pixel columns; order frame,
// row, column. The first latent frame spans one pixel frame, the others vae_scale[0] (causal offset).
at::Tensor video_coordinates(const TransformerConfig& config, VideoGrid grid, double fps);

// The same for frames beside the grid, without the causal offset.  Source: VideoConditionByKeyframeIndex of
// the official package, _prepare_keyframe_coords of diffusers' LTX2ConditionPipeline.
at::Tensor keyframe_coordinates(const TransformerConfig& config, VideoGrid keyframe, KeyframePlace place,
                                double fps);

// The same for a reference clip of 1 / downscale of the size, which lies over the clip in time and space.
// Source: _encode_reference_conditions of diffusers' LTX2InContextPipeline.
at::Tensor reference_coordinates(const TransformerConfig& config, VideoGrid reference, std::int64_t downscale,
                                 double fps);

// Bounds in seconds, f32 [1, 1, tokens, 2].  `shift` is added to the latent index.
at::Tensor audio_coordinates(const TransformerConfig& config, std::int64_t tokens, std::int64_t shift = 0);

struct Positions {
  nn::RopeTable video, audio;              // self-attention
  nn::RopeTable video_cross, audio_cross;  // audio-to-video and video-to-audio: the time axis alone
};

// Coordinates [batch, axes, tokens, 2]; a batch of 1 serves any batch.  Undefined ones leave out the tables
// of their stream, and those across.
Positions make_positions(const TransformerConfig& config, const at::Tensor& video, const at::Tensor& audio);

}  // namespace sluice::ltx2
