#include "models/ltx2/transformer/transformer.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sluice::ltx2 {
namespace {

constexpr double kMaskedBias =
    -10000.0;  // as the reference: not -inf, so that a row with everything masked stays finite
constexpr double kOutputNormEps = 1e-6;

// A mask in [0, 1] as a bias on attention scores, one for all heads: [batch, 1, 1 or tokens, keys].
at::Tensor as_bias(const at::Tensor& mask, at::ScalarType dtype) {
  if (!mask.defined()) return {};
  at::Tensor bias = (1 - mask.to(dtype)) * kMaskedBias;
  return mask.dim() == 2 ? bias.unsqueeze(1).unsqueeze(1) : bias.unsqueeze(1);
}

at::Tensor by_token(const at::Tensor& timestep) {
  return timestep.dim() == 1 ? timestep.unsqueeze(1) : timestep;
}

}  // namespace

Transformer::Transformer(TransformerConfig config) : config_(std::move(config)) {
  entrance_.name = "transformer entrance";
  exit_.name = "transformer exit";
  declare_ends(config_.video, video_, true);
  declare_ends(config_.audio, audio_, false);
  if (config_.keyframe_embedding) {
    weights::ParameterScope(entrance_).add("keyframes_abs_pos_embedding", keyframe_embedding_,
                                           {1, config_.video.width()});
  }
  blocks_ = std::vector<Block>(static_cast<std::size_t>(config_.num_layers));
  for (std::size_t index = 0; index < blocks_.size(); ++index) {
    declare(blocks_[index], config_, static_cast<std::int64_t>(index));
  }
}

void Transformer::declare_ends(const StreamConfig& own, StreamEnds& ends, bool video) {
  const weights::ParameterScope scope(entrance_), exit(exit_);
  const std::int64_t width = own.width();
  const std::string audio = video ? "" : "audio_";
  nn::declare(scope / (audio + "proj_in"), ends.proj_in, {.in = own.in_channels, .out = width});
  nn::declare(exit / (audio + "proj_out"), ends.proj_out, {.in = width, .out = own.out_channels});
  declare(scope / (audio + "time_embed"), ends.time, width, own.text_modulation ? 9 : 6);
  if (config_.prompt_modulation() && config_.prompt_adaln) {
    declare(scope / (audio + "prompt_adaln"), ends.prompt, width, 2);
  }
  declare(scope / (video ? "av_cross_attn_video_scale_shift" : "av_cross_attn_audio_scale_shift"), ends.cross,
          width, 4);
  declare(scope / (video ? "av_cross_attn_video_a2v_gate" : "av_cross_attn_audio_v2a_gate"), ends.cross_gate,
          width, 1);
  if (config_.caption_projection) {
    auto caption = scope / (audio + "caption_projection");
    nn::declare(caption / "linear_1", ends.caption.linear_1, {.in = config_.caption_channels, .out = width});
    nn::declare(caption / "linear_2", ends.caption.linear_2, {.in = width, .out = width});
  }
  exit.add(audio + "scale_shift_table", ends.table, {2, width});
}

std::vector<const weights::ParameterGroup*> Transformer::groups() const {
  std::vector<const weights::ParameterGroup*> groups = {&entrance_};
  for (const Block& block : blocks_) groups.push_back(&block.parameters);
  groups.push_back(&exit_);
  return groups;
}

StreamContext Transformer::stream_context(const StreamInput& input, const StreamEnds& ends,
                                          const at::Tensor& cross_timestep) const {
  const at::ScalarType dtype = input.latents.scalar_type();
  const double gate_factor = config_.cross_timestep_scale / config_.timestep_scale;
  StreamContext context;
  context.modulation.time = Modulation(ends.time, by_token(input.timestep), dtype);
  if (config_.prompt_modulation() && config_.prompt_adaln) {
    context.modulation.prompt = Modulation(ends.prompt, by_token(input.sigma), dtype);
  }
  context.modulation.cross = Modulation(ends.cross, by_token(cross_timestep), dtype);
  context.modulation.cross_gate = Modulation(ends.cross_gate, by_token(cross_timestep * gate_factor), dtype);
  context.text = input.text.to(dtype);
  if (config_.caption_projection) {
    context.text =
        nn::linear(ends.caption.linear_2, nn::linear_gelu_tanh(ends.caption.linear_1, context.text));
  }
  context.text_bias = as_bias(input.text_mask, dtype);
  context.self_bias = as_bias(input.self_mask, dtype);
  return context;
}

BlockContext Transformer::enter(const Pass& pass, const Positions& positions, Streams& x) const {
  x.video = nn::linear(video_.proj_in, pass.video.latents);
  x.audio = nn::linear(audio_.proj_in, pass.audio.latents);
  if (config_.keyframe_embedding && pass.keyframe_mask.defined()) {
    at::Tensor marker = (pass.keyframe_mask > 0).to(x.video.scalar_type());
    x.video = x.video + marker * keyframe_embedding_.to(x.video.scalar_type());
  }
  BlockContext context;
  context.video =
      stream_context(pass.video, video_, pass.cross_timestep ? pass.audio.sigma : pass.video.timestep);
  context.audio =
      stream_context(pass.audio, audio_, pass.cross_timestep ? pass.video.sigma : pass.audio.timestep);
  context.positions = &positions;
  context.isolate_modalities = pass.isolate_modalities;
  return context;
}

at::Tensor Transformer::leave(const StreamEnds& ends, const StreamContext& context, const at::Tensor& x) {
  at::Tensor embedding = context.modulation.time.embedding();  // [batch, 1 or tokens, width]
  at::Tensor table = ends.table.to(x.scalar_type());
  at::Tensor h = nn::modulate(nn::layer_norm(x, kOutputNormEps), embedding + table.select(0, 1),
                              embedding + table.select(0, 0));
  return nn::linear(ends.proj_out, h);
}

std::vector<Streams> Transformer::forward(weights::WeightSource& source, const Positions& positions,
                                          const std::vector<Pass>& passes,
                                          const BlockObserver& observer) const {
  std::vector<Streams> x(passes.size());
  std::vector<BlockContext> contexts;
  {
    auto lease = source.acquire(entrance_);
    for (std::size_t i = 0; i < passes.size(); ++i) {
      if (!passes[i].perturbed_blocks.empty() && !config_.perturbed_attention) {
        throw Error(ErrorKind::usage,
                    "this transformer has no perturbed attention, so spatio-temporal guidance is impossible",
                    "leave out --stg");
      }
      contexts.push_back(enter(passes[i], positions, x[i]));
    }
  }
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    auto lease = source.acquire(blocks_[b].parameters);
    for (std::size_t i = 0; i < passes.size(); ++i) {
      contexts[i].perturbation_mask = at::Tensor();
      if (passes[i].perturbed_blocks.contains(static_cast<std::int64_t>(b))) {
        const at::Tensor& mask = passes[i].perturbation_mask;
        contexts[i].perturbation_mask = mask.defined()
                                            ? mask.view({-1, 1, 1})
                                            : at::zeros({x[i].video.size(0), 1, 1}, x[i].video.options());
      }
      x[i] = block_forward(blocks_[b], config_, contexts[i], std::move(x[i]));
    }
    if (observer) observer(static_cast<std::int64_t>(b), x);
  }
  auto lease = source.acquire(exit_);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    x[i].video = leave(video_, contexts[i].video, x[i].video);
    x[i].audio = leave(audio_, contexts[i].audio, x[i].audio);
  }
  return x;
}

}  // namespace sluice::ltx2
