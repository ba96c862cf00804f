#include "models/ltx2/transformer/transformer.h"

#include "kernels/norm.h"
#include "kernels/rows.h"

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

// [batch, tokens, width] for the tokens of `like`, in its dtype.
at::Tensor take(kernels::Workspace& workspace, const at::Tensor& like, std::int64_t width) {
  return workspace.take({like.size(0), like.size(1), width}, like.scalar_type());
}

at::Tensor by_token(const at::Tensor& timestep) {
  return timestep.dim() == 1 ? timestep.unsqueeze(1) : timestep;
}

}  // namespace

Transformer::Transformer(TransformerConfig config, Modalities modalities)
    : config_(std::move(config)), modalities_(modalities) {
  entrance_.name = "transformer entrance";
  exit_.name = "transformer exit";
  if (has_video(modalities)) declare_ends(config_.video, video_, true);
  if (has_audio(modalities)) declare_ends(config_.audio, audio_, false);
  if (config_.keyframe_embedding && has_video(modalities)) {
    weights::ParameterScope(entrance_).add("keyframes_abs_pos_embedding", keyframe_embedding_,
                                           {1, config_.video.width()});
  }
  blocks_ = std::vector<Block>(static_cast<std::size_t>(config_.num_layers));
  for (std::size_t index = 0; index < blocks_.size(); ++index) {
    declare(blocks_[index], config_, modalities, static_cast<std::int64_t>(index));
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
  if (modalities_ == Modalities::both) {
    declare(scope / (video ? "av_cross_attn_video_scale_shift" : "av_cross_attn_audio_scale_shift"),
            ends.cross, width, 4);
    declare(scope / (video ? "av_cross_attn_video_a2v_gate" : "av_cross_attn_audio_v2a_gate"),
            ends.cross_gate, width, 1);
  }
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
                                          const at::Tensor& cross_timestep,
                                          kernels::Workspace& workspace) const {
  const at::ScalarType dtype = input.latents.scalar_type();
  const double gate_factor = config_.cross_timestep_scale / config_.timestep_scale;
  auto modulation = [&](const AdaLayerNorm& layer, const at::Tensor& timestep) {
    return Modulation(layer, by_token(timestep), dtype, workspace);
  };
  StreamContext context;
  context.modulation.time = modulation(ends.time, input.timestep);
  if (config_.prompt_modulation() && config_.prompt_adaln)
    context.modulation.prompt = modulation(ends.prompt, input.sigma);
  if (modalities_ == Modalities::both) {
    context.modulation.cross = modulation(ends.cross, cross_timestep);
    context.modulation.cross_gate = modulation(ends.cross_gate, cross_timestep * gate_factor);
  }
  context.text = input.text.to(dtype);
  if (config_.caption_projection) {
    at::Tensor text = take(workspace, context.text, ends.caption.linear_2.out);
    const kernels::Workspace::Scope scope(workspace);
    at::Tensor hidden = take(workspace, context.text, ends.caption.linear_1.out);
    nn::linear(ends.caption.linear_1, context.text, {.activation = kernels::Activation::gelu_tanh}, workspace,
               hidden);
    nn::linear(ends.caption.linear_2, hidden, {}, workspace, text);
    context.text = text;
  }
  context.text_bias = as_bias(input.text_mask, dtype);
  context.self_bias = as_bias(input.self_mask, dtype);
  return context;
}

BlockContext Transformer::enter(const Pass& pass, const Positions& positions, kernels::Workspace& workspace,
                                Streams& x) const {
  auto project = [&](const nn::Linear& layer, const at::Tensor& latents) {
    at::Tensor stream = take(workspace, latents, layer.out);
    nn::linear(layer, latents, {}, workspace, stream);
    return stream;
  };
  const bool video = has_video(modalities_), audio = has_audio(modalities_);
  if (video) x.video = project(video_.proj_in, pass.video.latents);
  if (audio) x.audio = project(audio_.proj_in, pass.audio.latents);
  if (video && config_.keyframe_embedding && pass.keyframe_mask.defined()) {
    const at::Tensor marker = (pass.keyframe_mask > 0).to(x.video.scalar_type());
    x.video.addcmul_(marker, keyframe_embedding_.to(x.video.scalar_type()));
  }
  BlockContext context;
  if (video)
    context.video = stream_context(pass.video, video_,
                                   pass.cross_timestep ? pass.audio.sigma : pass.video.timestep, workspace);
  if (audio)
    context.audio = stream_context(pass.audio, audio_,
                                   pass.cross_timestep ? pass.video.sigma : pass.audio.timestep, workspace);
  context.positions = &positions;
  context.isolate_modalities = pass.isolate_modalities;
  return context;
}

void Transformer::leave(const StreamEnds& ends, const StreamContext& context, const at::Tensor& x,
                        kernels::Workspace& workspace, at::Tensor& velocity) {
  const kernels::Workspace::Scope scope(workspace);
  const Modulation& time = context.modulation.time;
  at::Tensor h = kernels::take_rows(workspace, x.sizes(), x.scalar_type());
  kernels::norm_modulated(x,
                          {.norm = kernels::RowNorm::layer,
                           .eps = kOutputNormEps,
                           .scale = time.embedding(ends.table, 1, workspace),
                           .shift = time.embedding(ends.table, 0, workspace)},
                          h);
  nn::linear(ends.proj_out, h, {}, workspace, velocity);
}

void Transformer::require_possible(const Pass& pass) const {
  if (pass.perturbed_blocks.empty() || config_.perturbed_attention) return;
  throw Error(ErrorKind::usage,
              "this transformer has no perturbed attention, so spatio-temporal guidance is impossible",
              "leave out --stg");
}

void Transformer::run_block(std::size_t index, const std::vector<Pass>& passes,
                            std::vector<BlockContext>& contexts, kernels::Workspace& workspace,
                            std::vector<Streams>& x) const {
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const bool perturbed = passes[i].perturbed_blocks.contains(static_cast<std::int64_t>(index));
    auto perturb = [&](const at::Tensor& stream, bool own, StreamContext& context) {
      const at::Tensor& mask = passes[i].perturbation_mask;
      context.perturbation_mask = at::Tensor();
      if (!perturbed || !own || !stream.defined()) return;
      context.perturbation_mask =
          mask.defined() ? mask.view({-1, 1, 1}) : at::zeros({stream.size(0), 1, 1}, stream.options());
    };
    perturb(x[i].video, has_video(passes[i].perturbed_streams), contexts[i].video);
    perturb(x[i].audio, has_audio(passes[i].perturbed_streams), contexts[i].audio);
    block_forward(blocks_[index], config_, contexts[i], workspace, x[i]);
  }
}

std::vector<Streams> Transformer::forward(weights::WeightSource& source, const Positions& positions,
                                          const std::vector<Pass>& passes, kernels::Workspace& workspace,
                                          const BlockObserver& observer) const {
  for (const Pass& pass : passes) require_possible(pass);
  std::vector<Streams> velocities;
  for (const Pass& pass : passes) {
    Streams& of = velocities.emplace_back();
    if (has_video(modalities_)) of.video = take(workspace, pass.video.latents, video_.proj_out.out);
    if (has_audio(modalities_)) of.audio = take(workspace, pass.audio.latents, audio_.proj_out.out);
  }
  const kernels::Workspace::Scope scope(workspace);
  std::vector<Streams> x(passes.size());
  std::vector<BlockContext> contexts;
  {
    auto lease = source.acquire(entrance_);
    for (std::size_t i = 0; i < passes.size(); ++i)
      contexts.push_back(enter(passes[i], positions, workspace, x[i]));
  }
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    auto lease = source.acquire(blocks_[b].parameters);
    run_block(b, passes, contexts, workspace, x);
    if (observer) observer(static_cast<std::int64_t>(b), x);
  }
  auto lease = source.acquire(exit_);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (x[i].video.defined()) leave(video_, contexts[i].video, x[i].video, workspace, velocities[i].video);
    if (x[i].audio.defined()) leave(audio_, contexts[i].audio, x[i].audio, workspace, velocities[i].audio);
  }
  return velocities;
}

std::vector<Streams> Transformer::forward(weights::WeightSource& source, const Positions& positions,
                                          const std::vector<Pass>& passes,
                                          const BlockObserver& observer) const {
  kernels::Workspace workspace;
  const kernels::Workspace::Scope scope(workspace);
  std::vector<Streams> velocities = forward(source, positions, passes, workspace, observer);
  for (Streams& of : velocities) {
    for (at::Tensor* stream : {&of.video, &of.audio})
      if (stream->defined()) *stream = stream->clone();
  }
  return velocities;
}

}  // namespace sluice::ltx2
