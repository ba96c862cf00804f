#include "pipeline/denoise_memory.h"

#include "kernels/attention.h"
#include "kernels/low_rank.h"
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
  // The most of any part of a block.
  std::int64_t block() const {
    return std::max({part(config_.video, shape_.video_tokens), part(config_.audio, shape_.audio_tokens),
                     shape_.video_tokens > 0 && shape_.audio_tokens > 0 ? across() : 0});
  }

 private:
  // The most inside of one stream.
  std::int64_t part(const ltx2::StreamConfig& own, std::int64_t tokens) const {
    if (tokens == 0) return 0;
    const std::int64_t text = shape_.text_tokens, input = rows(tokens, own.width());
    const std::int64_t gate = own.gated_attention ? plain(tokens, own.heads) : 0;
    // Normed input; value, query, key.  The result takes the query's place.
    const std::int64_t self = input + 3 * plain(tokens, own.width()) + gate;
    // Normed input, modulated text; query; key and value of the text.
    const std::int64_t to_text =
        input + rows(text, own.text_dim) + plain(tokens, own.width()) + 2 * plain(text, own.width()) + gate;
    // Normed input, a piece's inner values.
    const std::int64_t inner = rows(1, 4 * own.width());
    const std::int64_t feed = input + std::min(tokens * inner, nn::kInnerBytes + inner);
    return std::max({self, to_text, feed}) + vectors(own);
  }

  // Both streams as they enter both directions; query of one, key and value of the other.
  std::int64_t across() const {
    const auto &video = config_.video, &audio = config_.audio;
    const std::int64_t tokens = shape_.video_tokens, sound = shape_.audio_tokens;
    return 2 * (rows(tokens, video.width()) + rows(sound, audio.width())) +
           2 * plain(std::max(tokens, sound), config_.cross_width) +
           plain(std::min(tokens, sound), config_.cross_width) + plain(std::max(tokens, sound), audio.heads) +
           vectors(video) + vectors(audio);
  }

  // Rows of a modulation with the block's table added; with one timestep they are as good as nothing.
  std::int64_t vectors(const ltx2::StreamConfig& of) const {
    return shape_.timesteps > 1 ? plain(3 * shape_.timesteps, of.width()) : 0;
  }

  // A stream, velocities, text in the stream's width, and rows of a modulation for each timestep: of time,
  // prompt, both cross-modal ones, and the gate's, with an embedding each; beside that, where there are
  // several timesteps, which one each token has.
  std::int64_t stream(const ltx2::StreamConfig& of, std::int64_t tokens) const {
    if (tokens == 0) return 0;
    const std::int64_t text = config_.caption_projection ? plain(shape_.text_tokens, of.width()) : 0;
    return plain(tokens, of.width()) + plain(tokens, of.out_channels) + text +
           plain((9 + 1) * shape_.timesteps + 2 + 4 + 1 + 3, of.width());
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
  const std::int64_t mask = shape.video_mask ? sizes.plain(shape.video_tokens, 3 * shape.video_tokens) : 0;
  memory.contexts = static_cast<Bytes>(shape.contexts * text + tables + mask);
  memory.streams = static_cast<Bytes>(sizes.streams());
  memory.block = static_cast<Bytes>(sizes.block());
  auto attention = [&](const ltx2::StreamConfig& own, std::int64_t tokens) -> Bytes {
    if (tokens == 0) return 0;
    return kernels::attention_scratch({.heads = own.heads,
                                       .tokens = tokens,
                                       .keys = std::max(tokens, shape.text_tokens),
                                       .dim = own.head_dim,
                                       .dtype = shape.dtype},
                                      shape.threads, kernels::attention_limits());
  };
  memory.scratch =
      std::max({attention(config.video, shape.video_tokens), attention(config.audio, shape.audio_tokens),
                kernels::product_scratch(shape.threads)}) +
      kernels::low_rank_scratch(std::max({shape.video_tokens, shape.audio_tokens, shape.text_tokens}),
                                shape.adapter_ranks, shape.dtype);
  return memory;
}

}  // namespace sluice::pipeline
