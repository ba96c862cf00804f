#include "pipeline/denoise_memory.h"

#include "kernels/attention.h"
#include "kernels/packed_product.h"

#include <algorithm>

namespace sluice::pipeline {
namespace {

constexpr std::int64_t kInner = 64 << 20;  // of the feed-forward's pieces (nn/layers.h)

}  // namespace

DenoiseMemory denoise_memory(const ltx2::TransformerConfig& config, const DenoiseShape& shape) {
  const auto size = static_cast<std::int64_t>(c10::elementSize(shape.dtype));
  const std::int64_t video = shape.video_tokens * config.video.width() * size;
  const std::int64_t audio = shape.audio_tokens * config.audio.width() * size;
  const std::int64_t text = shape.text_tokens * (config.video.text_dim + config.audio.text_dim) * size;
  const std::int64_t cross = shape.video_tokens * config.cross_width * size;

  // cos and sin in f32, half a width each, of both streams and both cross-modal directions.
  const std::int64_t tables =
      4 * (shape.video_tokens * config.video.width() + shape.audio_tokens * config.audio.width() +
           (shape.video_tokens + shape.audio_tokens) * config.cross_width);
  DenoiseMemory memory;
  memory.held = static_cast<Bytes>(shape.contexts * text + tables + shape.passes * (video + audio));

  // Normed input, value, query, key, result of the video's self-attention, and that projected.
  const std::int64_t self = 6 * video;
  // Both streams as they enter both directions, then query and result at the cross-modal width.
  const std::int64_t across = 3 * video + 2 * audio + 2 * cross;
  // Text attention: normed input, modulated text with key and value, query, result.
  const std::int64_t to_text =
      3 * video + 3 * shape.text_tokens * std::max(config.video.text_dim, config.video.width()) * size;
  // Feed-forward: normed input, result, and a piece's inner values with the piece's result.
  const std::int64_t inner = std::min(4 * video, kInner);
  const std::int64_t feed = 2 * video + inner + inner / 4;
  memory.block = static_cast<Bytes>(std::max({self, across, to_text, feed}));
  memory.scratch = kernels::attention_scratch({.heads = config.video.heads,
                                               .tokens = shape.video_tokens,
                                               .keys = std::max(shape.video_tokens, shape.text_tokens),
                                               .dim = config.video.head_dim,
                                               .dtype = shape.dtype},
                                              shape.threads, kernels::attention_limits()) +
                   static_cast<Bytes>(shape.threads) * kernels::kPackedScratch;
  return memory;
}

}  // namespace sluice::pipeline
