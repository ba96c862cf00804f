#include "models/ltx2/connectors/feature_extractor.h"

#include "kernels/linear.h"
#include "kernels/scratch.h"
#include "kernels/widen.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice::ltx2 {
namespace {

constexpr double kEps = 1e-6;
constexpr double kRangeScale = 8;  // of the 2.0 norm
// Rows of a projection whose columns are laid out anew at a time: at the published sizes 24 MB in f32, and
// the product has a full block of columns.
constexpr std::int64_t kRowsAtOnce = 32;

// Rows [begin, end) in `dtype`, contiguous; where they are so in the file, without a copy.
at::Tensor widened(const nn::Linear& rows, std::int64_t begin, std::int64_t end, at::ScalarType dtype) {
  const kernels::Matrix matrix = nn::matrix(rows);
  if (matrix.format() == kernels::MatrixFormat::dense && matrix.values.scalar_type() == dtype &&
      kernels::is_aligned(matrix.values))
    return matrix.values.view({matrix.rows, matrix.columns}).slice(0, begin, end);
  at::Tensor wide = kernels::scratch({end - begin, matrix.columns}, dtype);
  kernels::widen_rows(matrix, begin, end, wide);
  return wide;
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

// The reference scales a projection's input by sqrt(width / channels); scaling the product spares a second
// copy of the input.
double input_scale(const ConnectorsConfig& config, const ConnectorConfig& connector) {
  if (!config.per_modality_projections) return 1.0;
  return std::sqrt(static_cast<double>(connector.width()) / static_cast<double>(config.caption_channels));
}

}  // namespace

FeatureAccumulator::FeatureAccumulator(const TextProjections& projections, weights::WeightSource& source,
                                       std::vector<std::int64_t> tokens, at::ScalarType dtype,
                                       FeatureLimits limits)
    : projections_(projections),
      source_(source),
      tokens_(std::move(tokens)),
      first_row_(tokens_.size()),
      dtype_(dtype),
      next_state_(tokens_.size(), 0) {
  std::exclusive_scan(tokens_.begin(), tokens_.end(), first_row_.begin(), std::int64_t{0});
  rows_ = std::accumulate(tokens_.begin(), tokens_.end(), std::int64_t{0});
  const ConnectorsConfig& config = projections.config;
  plan_ = plan_shares(config, rows_, dtype, limits);
  streams_.push_back({&projections.video, input_scale(config, config.video), {}, {}});
  if (config.per_modality_projections)
    streams_.push_back({&projections.audio, input_scale(config, config.audio), {}, {}});
}

std::int64_t FeatureAccumulator::held_end() const {
  return std::min((first_share_ + plan_.held) * plan_.share, plan_.states);
}

void FeatureAccumulator::hold() {
  const std::int64_t count = std::min(plan_.held, plan_.shares - first_share_);
  held_.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    at::Tensor& share = held_[static_cast<std::size_t>(i)];
    const std::int64_t states = plan_.states_of(first_share_ + i);
    if (share.defined() && share.size(2) == states) continue;
    share.reset();  // the old one first, so that both never exist at once
    share =
        at::empty({rows_, projections_.config.caption_channels, states}, at::TensorOptions().dtype(dtype_));
  }
}

void FeatureAccumulator::add(std::size_t prompt, std::int64_t state, const at::Tensor& hidden) {
  at::NoGradGuard no_grad;
  if (state == held_end() && std::ranges::all_of(next_state_, [&](std::int64_t n) { return n == state; })) {
    project_held();
    first_share_ += plan_.held;
  }
  if (state != next_state_.at(prompt) || state >= held_end()) {
    throw Error(ErrorKind::internal, fmt::format("text encoder state {} came where {} of {} was due", state,
                                                 next_state_.at(prompt), plan_.states));
  }
  if (std::ranges::all_of(next_state_, [&](std::int64_t n) { return n == first_share_ * plan_.share; }))
    hold();
  const auto share = static_cast<std::size_t>(state / plan_.share - first_share_);
  held_[share]
      .narrow(0, first_row_[prompt], tokens_[prompt])
      .select(2, state % plan_.share)
      .copy_(norm_state(projections_.config, hidden));
  next_state_[prompt]++;
}

void FeatureAccumulator::project_held() {
  const ConnectorsConfig& config = projections_.config;
  columns_ = at::empty({kRowsAtOnce * config.caption_channels * plan_.held * plan_.share},
                       at::TensorOptions().dtype(dtype_));
  for (Stream& stream : streams_) {
    if (!stream.sums.defined()) {
      stream.sums = at::zeros({rows_, stream.projection->out}, at::TensorOptions().dtype(at::kFloat));
      stream.padding = at::zeros({stream.projection->out}, at::TensorOptions().dtype(at::kFloat));
    }
    for (const ProjectionTile& tile : stream.projection->tiles) {
      auto lease = source_.acquire(tile.group);
      project_tile(stream, tile);
      if (tile.rows.bias.defined()) stream.padding.narrow(0, tile.begin, tile.rows.out).copy_(tile.rows.bias);
    }
  }
  columns_.reset();
}

void FeatureAccumulator::project_tile(Stream& stream, const ProjectionTile& tile) {
  const auto count = static_cast<std::int64_t>(held_.size());
  for (std::int64_t begin = 0; begin < tile.rows.out; begin += kRowsAtOnce) {
    const std::int64_t end = std::min(begin + kRowsAtOnce, tile.rows.out);
    const std::vector<at::Tensor> columns =
        split_columns(widened(tile.rows, begin, end, dtype_), plan_, first_share_, count, columns_);
    at::Tensor sums = stream.sums.narrow(1, tile.begin + begin, end - begin);
    for (std::size_t prompt = 0; prompt < tokens_.size(); ++prompt) {
      at::Tensor sum = sums.narrow(0, first_row_[prompt], tokens_[prompt]);
      for (std::size_t share = 0; share < held_.size(); ++share) {
        const at::Tensor states = held_[share].narrow(0, first_row_[prompt], tokens_[prompt]).flatten(1);
        sum.add_(kernels::linear(states, columns[share], {}));
      }
    }
  }
}

std::vector<TextFeatures> FeatureAccumulator::finish() {
  at::NoGradGuard no_grad;
  for (std::int64_t next : next_state_) {
    if (next == plan_.states) continue;
    throw Error(ErrorKind::internal,
                fmt::format("only {} of {} text encoder states were added", next, plan_.states));
  }
  project_held();
  held_.clear();
  for (Stream& stream : streams_) stream.sums.mul_(stream.scale).add_(stream.padding);
  std::vector<TextFeatures> features;
  for (std::size_t prompt = 0; prompt < tokens_.size(); ++prompt)
    features.push_back(features_of(prompt, streams_.front(), streams_.back()));
  streams_.clear();
  return features;
}

TextFeatures FeatureAccumulator::features_of(std::size_t prompt, const Stream& video,
                                             const Stream& audio) const {
  auto rows = [&](const Stream& stream) {
    return stream.sums.narrow(0, first_row_[prompt], tokens_[prompt]).to(dtype_);
  };
  return {.video = rows(video),
          .audio = rows(audio),
          .video_padding = video.padding.to(dtype_),
          .audio_padding = audio.padding.to(dtype_)};
}

at::Tensor ReadyStates::state(std::int64_t index) const {
  return states.select(2, index).index_select(0, places);
}

std::vector<ReadyStates> ready_states(const ConnectorsConfig& config, const at::Tensor& states,
                                      const at::Tensor& mask) {
  const at::Tensor apart = with_states_apart(config, states);
  require_mask(apart, mask);
  std::vector<ReadyStates> rows;
  for (std::int64_t row = 0; row < apart.size(0); ++row)
    rows.push_back({.states = apart[row], .places = at::nonzero(mask[row]).squeeze(1)});
  return rows;
}

std::vector<TextFeatures> extract_features(const TextProjections& projections, weights::WeightSource& source,
                                           const at::Tensor& states, const at::Tensor& mask,
                                           at::ScalarType dtype) {
  at::NoGradGuard no_grad;
  const std::vector<ReadyStates> rows = ready_states(projections.config, states, mask);
  std::vector<std::int64_t> tokens;
  for (const ReadyStates& row : rows) tokens.push_back(row.tokens());
  FeatureAccumulator accumulator(projections, source, tokens, dtype);
  for (std::int64_t state = 0; state < projections.config.text_proj_in_factor; ++state) {
    for (std::size_t row = 0; row < rows.size(); ++row) accumulator.add(row, state, rows[row].state(state));
  }
  return accumulator.finish();
}

at::Tensor norm_state(const ConnectorsConfig& config, const at::Tensor& hidden) {
  if (config.per_modality_projections) {
    const at::Tensor none = at::zeros({1, 1, hidden.size(1)}, hidden.options());
    return nn::modulated_rms_norm(hidden.unsqueeze(0), kEps, none, none).squeeze(0);
  }
  at::Tensor x = hidden.to(at::kFloat);
  if (x.numel() == 0) return x;
  at::Tensor mean = x.sum() / (static_cast<double>(x.numel()) + kEps);
  return (x - mean).div_(x.amax() - x.amin() + kEps).mul_(kRangeScale);
}

at::Tensor norm_states(const ConnectorsConfig& config, const at::Tensor& states, const at::Tensor& mask) {
  at::NoGradGuard no_grad;
  at::Tensor normed =
      at::zeros(with_states_apart(config, states).sizes(), at::TensorOptions().dtype(at::kFloat));
  const std::vector<ReadyStates> rows = ready_states(config, states, mask);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::int64_t state = 0; state < normed.size(3); ++state) {
      normed[static_cast<std::int64_t>(row)].select(2, state).index_copy_(
          0, rows[row].places, norm_state(config, rows[row].state(state)));
    }
  }
  return normed.flatten(2);
}

FeatureMemory feature_memory(const ConnectorsConfig& config, std::int64_t tokens, at::ScalarType dtype,
                             const FeatureLimits& limits) {
  const StateShares plan = plan_shares(config, tokens, dtype, limits);
  const auto size = static_cast<std::int64_t>(elementSize(dtype));
  const std::int64_t widths =
      config.per_modality_projections ? config.video.width() + config.audio.width() : config.caption_channels;
  const std::int64_t sums = tokens * widths * 4;
  const std::int64_t columns = kRowsAtOnce * config.caption_channels * plan.held * plan.share * size;
  FeatureMemory memory{.held = static_cast<std::int64_t>(plan.held_bytes)};
  if (plan.passes > 1) memory.held += sums;
  // At the end the features in the compute dtype stand beside the sums; the states are gone by then.
  memory.projecting =
      std::max(static_cast<std::int64_t>(plan.held_bytes) + columns, tokens * widths * size) + sums;
  return memory;
}

Bytes projection_scratch(const ConnectorsConfig& config, at::ScalarType dtype) {
  return static_cast<Bytes>(kRowsAtOnce * config.feature_columns()) * elementSize(dtype);
}

}  // namespace sluice::ltx2
