#include "models/ltx2/transformer/block.h"

#include <ATen/ATen.h>

namespace sluice::ltx2 {
namespace {

// Rows of scale_shift_table.
enum TimeRow : std::int64_t {
  kShiftSelf,
  kScaleSelf,
  kGateSelf,
  kShiftFeed,
  kScaleFeed,
  kGateFeed,
  kShiftText,
  kScaleText,
  kGateText,
};

enum class Direction { audio_to_video, video_to_audio };

struct StreamNames {
  const char* self_attention;
  const char* text_attention;
  const char* cross_attention;
  const char* feed_forward;
  const char* table;
  const char* prompt_table;
  const char* cross_table;
};

constexpr StreamNames kVideoNames = {"attn1",
                                     "attn2",
                                     "audio_to_video_attn",
                                     "ff",
                                     "scale_shift_table",
                                     "prompt_scale_shift_table",
                                     "video_a2v_cross_attn_scale_shift_table"};
constexpr StreamNames kAudioNames = {"audio_attn1",
                                     "audio_attn2",
                                     "video_to_audio_attn",
                                     "audio_ff",
                                     "audio_scale_shift_table",
                                     "audio_prompt_scale_shift_table",
                                     "audio_a2v_cross_attn_scale_shift_table"};

void declare_stream(const weights::ParameterScope& scope, StreamBlock& block, const TransformerConfig& config,
                    const StreamConfig& own, const StreamConfig& other, const StreamNames& names) {
  nn::AttentionConfig self{.query_dim = own.width(),
                           .context_dim = own.width(),
                           .heads = own.heads,
                           .head_dim = own.head_dim,
                           .rope_layout = nn::parse_rope_layout(config.rope_type),
                           .bias = config.attention_bias ? nn::Bias::yes : nn::Bias::no,
                           .out_bias = config.attention_out_bias ? nn::Bias::yes : nn::Bias::no,
                           .gated = own.gated_attention};
  nn::AttentionConfig text = self;
  text.context_dim = own.text_dim;
  nn::AttentionConfig cross = self;  // both directions work at the audio stream's width
  cross.context_dim = other.width();
  cross.heads = config.audio.heads;
  cross.head_dim = config.audio.head_dim;
  nn::declare(scope / names.self_attention, block.self_attention, self);
  nn::declare(scope / names.text_attention, block.text_attention, text);
  nn::declare(scope / names.cross_attention, block.cross_attention, cross);
  nn::declare(
      scope / names.feed_forward, block.feed_forward,
      {.dim = own.width(), .inner = 4 * own.width(), .bias = own.ff_bias ? nn::Bias::yes : nn::Bias::no});
  scope.add(names.table, block.table, {own.text_modulation ? 9 : 6, own.width()});
  if (config.prompt_modulation()) scope.add(names.prompt_table, block.prompt_table, {2, own.width()});
  scope.add(names.cross_table, block.cross_table, {5, own.width()});
}

void self_attention(const StreamBlock& block, const StreamContext& context, double eps,
                    const nn::RopeTable& rope, const at::Tensor& perturbation_mask, at::Tensor& x) {
  const Modulation& time = context.modulation.time;
  at::Tensor h =
      nn::modulated_rms_norm(x, eps, time.row(block.table, kScaleSelf), time.row(block.table, kShiftSelf));
  h = nn::attention(
      block.self_attention,
      {.x = h, .bias = context.self_bias, .rope_q = &rope, .perturbation_mask = perturbation_mask});
  x.addcmul_(h, time.row(block.table, kGateSelf));
}

// Rows 0 and 1 of the prompt table (shift, scale), moved by the timestep where the model has a prompt AdaLN.
at::Tensor modulated_text(const StreamBlock& block, const StreamContext& context, bool with_timestep) {
  if (!block.prompt_table.defined()) return context.text;
  auto row = [&](std::int64_t index) {
    if (with_timestep) return context.modulation.prompt.row(block.prompt_table, index);
    return block.prompt_table.select(0, index).to(context.text.scalar_type());
  };
  return nn::modulate(context.text, row(1), row(0));
}

void text_attention(const StreamBlock& block, const TransformerConfig& config, const StreamConfig& own,
                    const StreamContext& context, at::Tensor& x) {
  const Modulation& time = context.modulation.time;
  at::Tensor h = own.text_modulation
                     ? nn::modulated_rms_norm(x, config.norm_eps, time.row(block.table, kScaleText),
                                              time.row(block.table, kShiftText))
                     : nn::rms_norm(x, config.norm_eps);
  at::Tensor text = modulated_text(block, context, config.prompt_adaln);
  h = nn::attention(block.text_attention, {.x = h, .context = text, .bias = context.text_bias});
  if (own.text_modulation) {
    x.addcmul_(h, time.row(block.table, kGateText));
  } else {
    x.add_(h);
  }
}

// A stream as it enters one of the two cross-modal attentions.
at::Tensor cross_input(const StreamBlock& block, const StreamContext& context, double eps,
                       const at::Tensor& x, Direction direction) {
  const std::int64_t scale = direction == Direction::audio_to_video ? 0 : 2;
  const Modulation& cross = context.modulation.cross;
  return nn::modulated_rms_norm(x, eps, cross.row(block.cross_table, scale),
                                cross.row(block.cross_table, scale + 1));
}

void cross_attention(const Block& block, const TransformerConfig& config, const BlockContext& context,
                     Streams& x) {
  auto enter = [&](Direction direction) {
    return Streams{cross_input(block.video, context.video, config.norm_eps, x.video, direction),
                   cross_input(block.audio, context.audio, config.norm_eps, x.audio, direction)};
  };
  auto gate = [](const StreamBlock& own, const StreamContext& stream) {
    return stream.modulation.cross_gate.row(own.cross_table.slice(0, 4, 5), 0);
  };
  // Both directions see the streams as they are before either update.
  const Streams to_video = enter(Direction::audio_to_video), to_audio = enter(Direction::video_to_audio);
  const Positions& positions = *context.positions;
  const at::Tensor video = nn::attention(block.video.cross_attention, {.x = to_video.video,
                                                                       .context = to_video.audio,
                                                                       .rope_q = &positions.video_cross,
                                                                       .rope_k = &positions.audio_cross});
  x.video.addcmul_(video, gate(block.video, context.video));
  const at::Tensor audio = nn::attention(block.audio.cross_attention, {.x = to_audio.audio,
                                                                       .context = to_audio.video,
                                                                       .rope_q = &positions.audio_cross,
                                                                       .rope_k = &positions.video_cross});
  x.audio.addcmul_(audio, gate(block.audio, context.audio));
}

void feed_forward(const StreamBlock& block, const StreamContext& context, double eps, at::Tensor& x) {
  const Modulation& time = context.modulation.time;
  at::Tensor h =
      nn::modulated_rms_norm(x, eps, time.row(block.table, kScaleFeed), time.row(block.table, kShiftFeed));
  x.addcmul_(nn::feed_forward(block.feed_forward, h), time.row(block.table, kGateFeed));
}

}  // namespace

void declare(Block& block, const TransformerConfig& config, std::int64_t index) {
  block.parameters.name = "transformer_blocks." + std::to_string(index);
  weights::ParameterScope scope(block.parameters, block.parameters.name);
  declare_stream(scope, block.video, config, config.video, config.audio, kVideoNames);
  declare_stream(scope, block.audio, config, config.audio, config.video, kAudioNames);
}

Streams block_forward(const Block& block, const TransformerConfig& config, const BlockContext& context,
                      Streams x) {
  const double eps = config.norm_eps;
  self_attention(block.video, context.video, eps, context.positions->video, context.perturbation_mask,
                 x.video);
  self_attention(block.audio, context.audio, eps, context.positions->audio, context.perturbation_mask,
                 x.audio);
  text_attention(block.video, config, config.video, context.video, x.video);
  text_attention(block.audio, config, config.audio, context.audio, x.audio);
  if (!context.isolate_modalities) cross_attention(block, config, context, x);
  feed_forward(block.video, context.video, eps, x.video);
  feed_forward(block.audio, context.audio, eps, x.audio);
  return x;
}

}  // namespace sluice::ltx2
