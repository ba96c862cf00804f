#include "models/ltx2/connectors/feature_extractor.h"

#include "kernels/linear.h"
#include "kernels/scratch.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sluice::ltx2 {
namespace {

constexpr double kEps = 1e-6;
constexpr double kRangeScale = 8;  // of the 2.0 norm

// x [tokens, channels, block] times the weight's columns of the states [begin, begin + block): a stride
// through every row.  A tile of rows is gathered (and widened) at a time.
at::Tensor project_columns(const at::Tensor& x, const at::Tensor& weight, std::int64_t begin,
                           Bytes gathered_bytes) {
  const std::int64_t channels = x.size(1), block = x.size(2), out = weight.size(0);
  if (block * channels == weight.size(1)) return kernels::linear(x.flatten(1), weight, {});

  at::Tensor columns = weight.view({out, channels, -1}).narrow(2, begin, block);
  const std::int64_t row_bytes = channels * block * static_cast<std::int64_t>(x.element_size());
  const std::int64_t tile =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(gathered_bytes) / row_bytes, 1, out);
  at::Tensor y = at::empty({x.size(0), out}, x.options());
  for (std::int64_t row = 0; row < out; row += tile) {
    const std::int64_t rows = std::min(tile, out - row);
    // Of x's dtype, so that linear() uses it as it is and leaves the scratch alone.
    at::Tensor gathered = kernels::scratch({rows, channels, block}, x.scalar_type());
    gathered.copy_(columns.narrow(0, row, rows));
    y.narrow(1, row, rows).copy_(kernels::linear(x.flatten(1), gathered.flatten(1), {}));
  }
  return y;
}

at::Tensor padding_of(const nn::Linear& projection, at::ScalarType dtype) {
  if (projection.bias.defined()) return projection.bias.to(dtype, /*non_blocking=*/false, /*copy=*/true);
  return at::zeros({projection.weight.size(0)}, at::TensorOptions().dtype(dtype));
}

// The reference scales the projection's input by sqrt(width / channels); scaling the product spares a second
// copy of the input.
at::Tensor finished(at::Tensor& sum, const nn::Linear& projection, double scale, at::ScalarType dtype) {
  return sum.mul_(scale).add_(padding_of(projection, at::kFloat)).to(dtype);
}

// [batch, tokens, channels, states] from either form.
at::Tensor with_states_apart(const ConnectorsConfig& config, const at::Tensor& states) {
  const std::int64_t channels = config.caption_channels, count = config.text_proj_in_factor;
  const bool flat = states.dim() == 3 && states.size(2) == channels * count;
  const bool apart = states.dim() == 4 && states.size(2) == channels && states.size(3) == count;
  if (apart) return states;
  if (flat) return states.unflatten(2, {channels, count});
  throw Error(
      ErrorKind::bad_input,
      fmt::format("the prompt embeddings have shape [{}], the checkpoint needs [batch, tokens, {}]",
                  fmt::join(states.sizes(), ", "), channels * count),
      fmt::format("make them with a text encoder of hidden size {} and {} layers", channels, count - 1));
}

void require_mask(const at::Tensor& states, const at::Tensor& mask) {
  if (mask.dim() == 2 && mask.size(0) == states.size(0) && mask.size(1) == states.size(1)) return;
  throw Error(ErrorKind::bad_input,
              fmt::format("the prompt's attention mask has shape [{}], its embeddings need [{}, {}]",
                          fmt::join(mask.sizes(), ", "), states.size(0), states.size(1)),
              "pass the mask that was made with the embeddings");
}

}  // namespace

TextProjections::TextProjections(const ConnectorsConfig& from) : config(from) {
  group.name = "text projections";
  weights::ParameterScope scope(group);
  const nn::Bias bias = config.proj_bias ? nn::Bias::yes : nn::Bias::no;
  const std::int64_t in = config.feature_columns();
  if (config.per_modality_projections) {
    nn::declare(scope / "video_text_proj_in", video, {.in = in, .out = config.video.width(), .bias = bias});
    nn::declare(scope / "audio_text_proj_in", audio, {.in = in, .out = config.audio.width(), .bias = bias});
  } else {
    nn::declare(scope / "text_proj_in", video, {.in = in, .out = config.caption_channels, .bias = bias});
  }
}

FeatureAccumulator::FeatureAccumulator(const TextProjections& projections, weights::WeightSource& source,
                                       std::int64_t tokens, at::ScalarType dtype, FeatureLimits limits)
    : projections_(projections), source_(source), tokens_(tokens), dtype_(dtype), limits_(limits) {
  const ConnectorsConfig& config = projections.config;
  const std::int64_t states = config.text_proj_in_factor;
  const std::int64_t state_bytes = std::max<std::int64_t>(tokens, 1) * config.caption_channels *
                                   static_cast<std::int64_t>(elementSize(dtype));
  const std::int64_t fitting =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(limits.held_states) / state_bytes, 1, states);
  const std::int64_t blocks = (states + fitting - 1) / fitting;
  block_states_ = (states + blocks - 1) / blocks;
}

void FeatureAccumulator::begin_block() {
  const std::int64_t states = projections_.config.text_proj_in_factor;
  const std::int64_t block = std::min(block_states_, states - block_begin_);
  if (block_.defined() && block_.size(2) == block) return;
  block_ = at::Tensor();  // the old one first, so that both never exist at once
  block_ =
      at::empty({tokens_, projections_.config.caption_channels, block}, at::TensorOptions().dtype(dtype_));
}

void FeatureAccumulator::add(std::int64_t state, const at::Tensor& hidden) {
  at::NoGradGuard no_grad;
  if (state != next_state_ || state >= projections_.config.text_proj_in_factor) {
    throw Error(ErrorKind::internal, fmt::format("text encoder state {} came where {} of {} was due", state,
                                                 next_state_, projections_.config.text_proj_in_factor));
  }
  if (state == block_begin_) begin_block();
  block_.select(2, state - block_begin_).copy_(norm_state(projections_.config, hidden));
  next_state_++;
  if (next_state_ == block_begin_ + block_.size(2)) project_block();
}

void FeatureAccumulator::project_block() {
  const ConnectorsConfig& config = projections_.config;
  auto lease = source_.acquire(projections_.group);
  auto add_share = [&](at::Tensor& sum, const nn::Linear& projection) {
    at::Tensor share =
        project_columns(block_, projection.weight, block_begin_, limits_.gathered_columns).to(at::kFloat);
    sum = sum.defined() ? sum.add_(share) : share;
  };
  add_share(video_, projections_.video);
  if (config.per_modality_projections) add_share(audio_, projections_.audio);
  block_begin_ = next_state_;
  if (next_state_ == config.text_proj_in_factor) complete();
}

void FeatureAccumulator::complete() {
  const ConnectorsConfig& config = projections_.config;
  block_ = at::Tensor();
  auto scale = [&](const ConnectorConfig& connector) {
    if (!config.per_modality_projections) return 1.0;
    return std::sqrt(static_cast<double>(connector.width()) / static_cast<double>(config.caption_channels));
  };
  features_.video = finished(video_, projections_.video, scale(config.video), dtype_);
  features_.video_padding = padding_of(projections_.video, dtype_);
  if (!config.per_modality_projections) {
    features_.audio = features_.video;
    features_.audio_padding = features_.video_padding;
    return;
  }
  features_.audio = finished(audio_, projections_.audio, scale(config.audio), dtype_);
  features_.audio_padding = padding_of(projections_.audio, dtype_);
}

TextFeatures FeatureAccumulator::finish() {
  const std::int64_t states = projections_.config.text_proj_in_factor;
  if (next_state_ != states) {
    throw Error(ErrorKind::internal,
                fmt::format("only {} of {} text encoder states were added", next_state_, states));
  }
  return std::move(features_);
}

std::vector<TextFeatures> extract_features(const TextProjections& projections, weights::WeightSource& source,
                                           const at::Tensor& states, const at::Tensor& mask,
                                           at::ScalarType dtype) {
  at::NoGradGuard no_grad;
  at::Tensor apart = with_states_apart(projections.config, states);
  require_mask(apart, mask);
  std::vector<TextFeatures> features;
  for (std::int64_t row = 0; row < apart.size(0); ++row) {
    at::Tensor tokens = at::nonzero(mask[row]).squeeze(1);
    FeatureAccumulator accumulator(projections, source, tokens.size(0), dtype);
    for (std::int64_t state = 0; state < apart.size(3); ++state)
      accumulator.add(state, apart[row].select(2, state).index_select(0, tokens));
    features.push_back(accumulator.finish());
  }
  return features;
}

at::Tensor norm_state(const ConnectorsConfig& config, const at::Tensor& hidden) {
  at::Tensor x = hidden.to(at::kFloat).contiguous();
  if (config.per_modality_projections || x.numel() == 0) return nn::rms_norm(x, kEps);
  at::Tensor mean = x.sum() / (static_cast<double>(x.numel()) + kEps);
  return (x - mean) / (x.amax() - x.amin() + kEps) * kRangeScale;
}

at::Tensor norm_states(const ConnectorsConfig& config, const at::Tensor& states, const at::Tensor& mask) {
  at::NoGradGuard no_grad;
  at::Tensor apart = with_states_apart(config, states);
  require_mask(apart, mask);
  at::Tensor normed = at::zeros(apart.sizes(), at::TensorOptions().dtype(at::kFloat));
  for (std::int64_t row = 0; row < apart.size(0); ++row) {
    at::Tensor tokens = at::nonzero(mask[row]).squeeze(1);
    for (std::int64_t state = 0; state < apart.size(3); ++state) {
      at::Tensor real = norm_state(config, apart[row].select(2, state).index_select(0, tokens));
      normed[row].select(2, state).index_copy_(0, tokens, real);
    }
  }
  return normed.flatten(2);
}

}  // namespace sluice::ltx2
