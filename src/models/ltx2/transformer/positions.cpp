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

}  // namespace

at::Tensor video_coordinates(const TransformerConfig& config, VideoGrid grid, double fps) {
  auto axes =
      at::meshgrid({counting(0, grid.frames), counting(0, grid.height), counting(0, grid.width)}, "ij");
  std::vector<at::Tensor> bounds;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    at::Tensor start = axes[axis].flatten();
    at::Tensor pixels = at::stack({start, start + 1}, -1) * config.vae_scale[axis];  // [tokens, 2]
    if (axis == 0) pixels = causal(pixels, config.causal_offset, config.vae_scale[0]) / fps;
    bounds.push_back(pixels);
  }
  return at::stack(bounds, 0).unsqueeze(0);
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
  at::Tensor video_middles = middles(video), audio_middles = middles(audio);
  at::Tensor video_time = video_middles.narrow(1, 0, 1), audio_time = audio_middles.narrow(1, 0, 1);
  return {
      .video = nn::make_rope_table(
          rope(v.width(), v.heads,
               {static_cast<double>(v.max_seconds), static_cast<double>(config.base_height),
                static_cast<double>(config.base_width)}),
          video_middles),
      .audio =
          nn::make_rope_table(rope(a.width(), a.heads, {static_cast<double>(a.max_seconds)}), audio_middles),
      .video_cross = nn::make_rope_table(rope(config.cross_width, v.heads, {longest}), video_time),
      .audio_cross = nn::make_rope_table(rope(config.cross_width, a.heads, {longest}), audio_time),
  };
}

}  // namespace sluice::ltx2
