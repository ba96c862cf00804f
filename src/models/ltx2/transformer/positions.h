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

// Bounds [start, end) of each token, f32 [1, 3, tokens, 2]: seconds, pixel rows, pixel columns; order frame,
// row, column. The first latent frame spans one pixel frame, the others vae_scale[0] (causal offset).
at::Tensor video_coordinates(const TransformerConfig& config, VideoGrid grid, double fps);

// Bounds in seconds, f32 [1, 1, tokens, 2].  `shift` is added to the latent index.
at::Tensor audio_coordinates(const TransformerConfig& config, std::int64_t tokens, std::int64_t shift = 0);

struct Positions {
  nn::RopeTable video, audio;              // self-attention
  nn::RopeTable video_cross, audio_cross;  // audio-to-video and video-to-audio: the time axis alone
};

// Coordinates [batch, axes, tokens, 2]; a batch of 1 serves any batch.
Positions make_positions(const TransformerConfig& config, const at::Tensor& video, const at::Tensor& audio);

}  // namespace sluice::ltx2
