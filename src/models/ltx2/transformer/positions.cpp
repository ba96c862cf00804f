#include "models/ltx2/transformer/positions.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

at::Tensor counting(std::int64_t begin, std::int64_t end) {
  return at::arange(begin, end, at::TensorOptions().dtype(at::kFloat));
}

// Frame 0 encodes one frame of the finer grid: shift all bounds back, never below 0.
at::Tensor causal(const at::Tensor& fine, std::int64_t offset, std::int64_t scale) {
  return (fine + offset - scale).clamp_min(0);
}

at::Tensor middles(const at::Tensor& bounds) {  // [batch, axes, tokens, 2] -> [batch, axes, tokens]
  return (bounds.select(-1, 0) + bounds.select(-1, 1)) / 2.0;
}

// Bounds of each token in frames and pixels: three of [tokens, 2].
std::vector<at::Tensor> pixel_bounds(const TransformerConfig& config, VideoGrid grid) {
  auto axes =
      at::meshgrid({counting(0, grid.frames), counting(0, grid.height), counting(0, grid.width)}, "ij");
  std::vector<at::Tensor> bounds;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    at::Tensor start = axes[axis].flatten();
    bounds.push_back(at::stack({start, start + 1}, -1) * config.vae_scale[axis]);
  }
  return bounds;
}

at::Tensor coordinates(const std::vector<at::Tensor>& bounds) {
  return at::stack(bounds, 0).unsqueeze(0);
}

}  // namespace

at::Tensor video_coordinates(const TransformerConfig& config, VideoGrid grid, double fps) {
  std::vector<at::Tensor> bounds = pixel_bounds(config, grid);
  bounds[0] = causal(bounds[0], config.causal_offset, config.vae_scale[0]) / fps;
  return coordinates(bounds);
}

at::Tensor keyframe_coordinates(const TransformerConfig& config, VideoGrid keyframe, KeyframePlace place,
                                double fps) {
  std::vector<at::Tensor> bounds = pixel_bounds(config, keyframe);
  at::Tensor frames = bounds[0] + place.pixel_frame;
  if (place.pixel_frames == 1) {
    const at::Tensor start = frames.select(-1, 0);
    frames = at::stack({start, start + 1}, -1);
  }
  bounds[0] = frames / fps;
  return coordinates(bounds);
}

at::Tensor reference_coordinates(const TransformerConfig& config, VideoGrid reference, std::int64_t downscale,
                                 double fps) {
  at::Tensor bounds = video_coordinates(config, reference, fps);
  bounds.slice(1, 1, 3).mul_(downscale);
  return bounds;
}

at::Tensor audio_coordinates(const TransformerConfig& config, std::int64_t tokens, std::int64_t shift) {
  at::Tensor start = counting(shift, shift + tokens);
  at::Tensor mel = causal(at::stack({start, start + 1}, -1) * config.audio_scale, config.causal_offset,
                          config.audio_scale);
  // Multiply first: the order of f32 operations is part of the format (angles reach thousands of radians).
  at::Tensor seconds = mel * config.audio_hop_length / config.audio_sampling_rate;
  return seconds.unsqueeze(0).unsqueeze(0);
}

Positions make_positions(const TransformerConfig& config, const at::Tensor& video, const at::Tensor& audio) {
  const auto layout = nn::parse_rope_layout(config.rope_type);
  auto rope = [&](std::int64_t dim, std::int64_t heads, std::vector<double> max_pos) {
    return nn::RopeConfig{.dim = dim,
                          .heads = heads,
                          .max_pos = std::move(max_pos),
                          .theta = config.rope_theta,
                          .double_precision = config.rope_double_precision,
                          .layout = layout};
  };
  const auto& v = config.video;
  const auto& a = config.audio;
  const double longest = static_cast<double>(std::max(v.max_seconds, a.max_seconds));
  auto across = [&](const at::Tensor& middle, std::int64_t heads) {
    return nn::make_rope_table(rope(config.cross_width, heads, {longest}), middle.narrow(1, 0, 1));
  };
  Positions positions;
  if (video.defined()) {
    const at::Tensor middle = middles(video);
    positions.video =
        nn::make_rope_table(rope(v.width(), v.heads,
                                 {static_cast<double>(v.max_seconds), static_cast<double>(config.base_height),
                                  static_cast<double>(config.base_width)}),
                            middle);
    if (audio.defined()) positions.video_cross = across(middle, v.heads);
  }
  if (audio.defined()) {
    const at::Tensor middle = middles(audio);
    positions.audio =
        nn::make_rope_table(rope(a.width(), a.heads, {static_cast<double>(a.max_seconds)}), middle);
    if (video.defined()) positions.audio_cross = across(middle, a.heads);
  }
  return positions;
}

}  // namespace sluice::ltx2
