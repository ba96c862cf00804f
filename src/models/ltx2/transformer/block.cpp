#include "models/ltx2/transformer/block.h"

#include "kernels/norm.h"
#include "kernels/rows.h"

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
                    const StreamConfig& own, const StreamConfig* other, const StreamNames& names) {
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
  nn::declare(scope / names.self_attention, block.self_attention, self);
  nn::declare(scope / names.text_attention, block.text_attention, text);
  if (other) {
    nn::AttentionConfig cross = self;  // both directions work at the audio stream's width
    cross.context_dim = other->width();
    cross.heads = config.audio.heads;
    cross.head_dim = config.audio.head_dim;
    nn::declare(scope / names.cross_attention, block.cross_attention, cross);
    scope.add(names.cross_table, block.cross_table, {5, own.width()});
  }
  nn::declare(
      scope / names.feed_forward, block.feed_forward,
      {.dim = own.width(), .inner = 4 * own.width(), .bias = own.ff_bias ? nn::Bias::yes : nn::Bias::no});
  scope.add(names.table, block.table, {own.text_modulation ? 9 : 6, own.width()});
  if (config.prompt_modulation()) scope.add(names.prompt_table, block.prompt_table, {2, own.width()});
}

// What the parts of a block share.
struct BlockPass {
  const TransformerConfig& config;
  const BlockContext& context;
  kernels::Workspace& workspace;
};

// x / rms(x) · (1 + table[scale] + …) + table[shift] + …, as the products that follow read it best.
at::Tensor modulated(const BlockPass& pass, const at::Tensor& x, const Modulation& by,
                     const at::Tensor& table, std::int64_t scale, std::int64_t shift) {
  at::Tensor h = kernels::take_rows(pass.workspace, x.sizes(), x.scalar_type());
  const kernels::Workspace::Scope scope(pass.workspace);
  kernels::norm_modulated(x,
                          {.eps = pass.config.norm_eps,
                           .scale = by.row(table, scale, pass.workspace),
                           .shift = by.row(table, shift, pass.workspace)},
                          h);
  return h;
}

void self_attention(const BlockPass& pass, const StreamBlock& block, const StreamContext& context,
                    const nn::RopeTable& rope, at::Tensor& x) {
  const Modulation& time = context.modulation.time;
  const kernels::Workspace::Scope scope(pass.workspace);
  const at::Tensor h = modulated(pass, x, time, block.table, kScaleSelf, kShiftSelf);
  nn::attention(
      block.self_attention,
      {.x = h, .bias = context.self_bias, .rope_q = &rope, .perturbation_mask = context.perturbation_mask},
      {.gate = time.row(block.table, kGateSelf, pass.workspace), .residual = x}, pass.workspace, x);
}

// Rows 0 and 1 of the prompt table (shift, scale), moved by the timestep where the model has a prompt AdaLN.
at::Tensor modulated_text(const BlockPass& pass, const StreamBlock& block, const StreamContext& context) {
  const at::Tensor& text = context.text;
  if (!block.prompt_table.defined()) return text;
  at::Tensor h = kernels::take_rows(pass.workspace, text.sizes(), text.scalar_type());
  const kernels::Workspace::Scope scope(pass.workspace);
  auto row = [&](std::int64_t index) -> kernels::RowVectors {
    if (pass.config.prompt_adaln)
      return context.modulation.prompt.row(block.prompt_table, index, pass.workspace);
    return block.prompt_table.select(0, index).to(text.scalar_type()).view({1, 1, -1});
  };
  kernels::norm_modulated(text, {.norm = kernels::RowNorm::none, .scale = row(1), .shift = row(0)}, h);
  return h;
}

void text_attention(const BlockPass& pass, const StreamConfig& own, const StreamBlock& block,
                    const StreamContext& context, at::Tensor& x) {
  const Modulation& time = context.modulation.time;
  const kernels::Workspace::Scope scope(pass.workspace);
  at::Tensor h;
  kernels::Epilogue end{.residual = x};
  if (own.text_modulation) {
    h = modulated(pass, x, time, block.table, kScaleText, kShiftText);
    end.gate = time.row(block.table, kGateText, pass.workspace);
  } else {
    h = kernels::take_rows(pass.workspace, x.sizes(), x.scalar_type());
    kernels::norm_modulated(x, {.eps = pass.config.norm_eps}, h);
  }
  nn::attention(block.text_attention,
                {.x = h, .context = modulated_text(pass, block, context), .bias = context.text_bias}, end,
                pass.workspace, x);
}

// A stream as it enters one of the two cross-modal attentions.
at::Tensor cross_input(const BlockPass& pass, const StreamBlock& block, const StreamContext& context,
                       const at::Tensor& x, Direction direction) {
  const std::int64_t scale = direction == Direction::audio_to_video ? 0 : 2;
  return modulated(pass, x, context.modulation.cross, block.cross_table, scale, scale + 1);
}

void cross_attention(const BlockPass& pass, const Block& block, Streams& x) {
  const BlockContext& context = pass.context;
  const kernels::Workspace::Scope scope(pass.workspace);
  auto enter = [&](Direction direction) {
    return Streams{cross_input(pass, block.video, context.video, x.video, direction),
                   cross_input(pass, block.audio, context.audio, x.audio, direction)};
  };
  auto gate = [&](const StreamBlock& own, const StreamContext& stream) {
    return stream.modulation.cross_gate.row(own.cross_table.slice(0, 4, 5), 0, pass.workspace);
  };
  // Both directions see the streams as they are before either update.
  const Streams to_video = enter(Direction::audio_to_video), to_audio = enter(Direction::video_to_audio);
  const Positions& positions = *context.positions;
  nn::attention(block.video.cross_attention,
                {.x = to_video.video,
                 .context = to_video.audio,
                 .rope_q = &positions.video_cross,
                 .rope_k = &positions.audio_cross},
                {.gate = gate(block.video, context.video), .residual = x.video}, pass.workspace, x.video);
  nn::attention(block.audio.cross_attention,
                {.x = to_audio.audio,
                 .context = to_audio.video,
                 .rope_q = &positions.audio_cross,
                 .rope_k = &positions.video_cross},
                {.gate = gate(block.audio, context.audio), .residual = x.audio}, pass.workspace, x.audio);
}

void feed_forward(const BlockPass& pass, const StreamBlock& block, const StreamContext& context,
                  at::Tensor& x) {
  const Modulation& time = context.modulation.time;
  const kernels::Workspace::Scope scope(pass.workspace);
  const at::Tensor h = modulated(pass, x, time, block.table, kScaleFeed, kShiftFeed);
  nn::feed_forward(block.feed_forward, h,
                   {.gate = time.row(block.table, kGateFeed, pass.workspace), .residual = x}, pass.workspace,
                   x);
}

}  // namespace

void declare(Block& block, const TransformerConfig& config, Modalities modalities, std::int64_t index) {
  block.parameters.name = "transformer_blocks." + std::to_string(index);
  weights::ParameterScope scope(block.parameters, block.parameters.name);
  const bool both = modalities == Modalities::both;
  if (has_video(modalities))
    declare_stream(scope, block.video, config, config.video, both ? &config.audio : nullptr, kVideoNames);
  if (has_audio(modalities))
    declare_stream(scope, block.audio, config, config.audio, both ? &config.video : nullptr, kAudioNames);
}

void block_forward(const Block& block, const TransformerConfig& config, const BlockContext& context,
                   kernels::Workspace& workspace, Streams& x) {
  const BlockPass pass{config, context, workspace};
  const bool video = x.video.defined(), audio = x.audio.defined();
  if (video) self_attention(pass, block.video, context.video, context.positions->video, x.video);
  if (audio) self_attention(pass, block.audio, context.audio, context.positions->audio, x.audio);
  if (video) text_attention(pass, config.video, block.video, context.video, x.video);
  if (audio) text_attention(pass, config.audio, block.audio, context.audio, x.audio);
  if (video && audio && !context.isolate_modalities) cross_attention(pass, block, x);
  if (video) feed_forward(pass, block.video, context.video, x.video);
  if (audio) feed_forward(pass, block.audio, context.audio, x.audio);
}

}  // namespace sluice::ltx2
