#include "pipeline/denoise_memory.h"

#include "kernels/attention.h"
#include "kernels/packed_product.h"
#include "kernels/rows.h"
#include "nn/layers.h"

#include <algorithm>

namespace sluice::pipeline {
namespace {

// Bytes of tensors in the compute dtype.
class Sizes {
 public:
  Sizes(const ltx2::TransformerConfig& config, const DenoiseShape& shape)
      : config_(config), shape_(shape), size_(static_cast<std::int64_t>(c10::elementSize(shape.dtype))) {}

  std::int64_t plain(std::int64_t tokens, std::int64_t width) const { return tokens * width * size_; }
  std::int64_t rows(std::int64_t tokens, std::int64_t width) const {  // as kernels::take_rows() takes them
    return tokens * kernels::row_bytes(width, shape_.dtype);
  }

  std::int64_t streams() const {
    return shape_.passes *
           (stream(config_.video, shape_.video_tokens) + stream(config_.audio, shape_.audio_tokens));
  }
  // The most of any part of a block; the video's parts are the largest but across the streams, where there
  // are both.
  std::int64_t block() const {
    const auto &video = config_.video, &audio = config_.audio;
    const std::int64_t tokens = shape_.video_tokens, sound = shape_.audio_tokens, text = shape_.text_tokens;
    const std::int64_t gate = video.gated_attention ? plain(tokens, video.heads) : 0;
    // Normed input; value, query, key.  The result takes the query's place.
    const std::int64_t self = rows(tokens, video.width()) + 3 * plain(tokens, video.width()) + gate;
    // Normed input, modulated text; query; key and value of the text.
    const std::int64_t to_text = rows(tokens, video.width()) + rows(text, video.text_dim) +
                                 plain(tokens, video.width()) + 2 * plain(text, video.width()) + gate;
    // Both streams as they enter both directions; query of one, key and value of the other.
    const std::int64_t across = 2 * (rows(tokens, video.width()) + rows(sound, audio.width())) +
                                2 * plain(std::max(tokens, sound), config_.cross_width) +
                                plain(std::min(tokens, sound), config_.cross_width) +
                                plain(std::max(tokens, sound), audio.heads);
    // Normed input, a piece's inner values.
    const std::int64_t inner = rows(1, 4 * video.width());
    const std::int64_t feed = rows(tokens, video.width()) + std::min(tokens * inner, nn::kInnerBytes + inner);
    return std::max({self, to_text, across, feed});
  }

 private:
  // A stream, velocities, text in the stream's width, and rows of a modulation for one timestep: of time,
  // prompt, both cross-modal ones, and the gate's, with an embedding each.
  std::int64_t stream(const ltx2::StreamConfig& of, std::int64_t tokens) const {
    const std::int64_t text = config_.caption_projection ? plain(shape_.text_tokens, of.width()) : 0;
    return plain(tokens, of.width()) + plain(tokens, of.out_channels) + text +
           plain(9 + 2 + 4 + 1 + 4, of.width());
  }

  const ltx2::TransformerConfig& config_;
  const DenoiseShape& shape_;
  std::int64_t size_;
};

}  // namespace

DenoiseMemory denoise_memory(const ltx2::TransformerConfig& config, const DenoiseShape& shape) {
  const Sizes sizes(config, shape);
  // cos and sin in f32, half a width each, of both streams and both cross-modal directions.
  const std::int64_t tables =
      4 * (shape.video_tokens * config.video.width() + shape.audio_tokens * config.audio.width() +
           (shape.video_tokens + shape.audio_tokens) * config.cross_width);
  const std::int64_t text = sizes.plain(shape.text_tokens, config.video.text_dim + config.audio.text_dim);
  DenoiseMemory memory;
  memory.contexts = static_cast<Bytes>(shape.contexts * text + tables);
  memory.streams = static_cast<Bytes>(sizes.streams());
  memory.block = static_cast<Bytes>(sizes.block());
  const Bytes attention = kernels::attention_scratch({.heads = config.video.heads,
                                                      .tokens = shape.video_tokens,
                                                      .keys = std::max(shape.video_tokens, shape.text_tokens),
                                                      .dim = config.video.head_dim,
                                                      .dtype = shape.dtype},
                                                     shape.threads, kernels::attention_limits());
  memory.scratch = std::max(attention, kernels::product_scratch(shape.threads));
  return memory;
}

}  // namespace sluice::pipeline
