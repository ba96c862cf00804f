#include "models/ltx2/connectors/connectors.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace sluice::ltx2 {

Connectors::Connectors(const ConnectorsConfig& config, Bytes projection_tile)
    : projections(config, projection_tile),
      video(config.video, "video_connector"),
      audio(config.audio, "audio_connector") {}

std::vector<const weights::ParameterGroup*> Connectors::groups() const {
  std::vector<const weights::ParameterGroup*> all = projections.groups();
  for (const auto* group : pass()) all.push_back(group);
  return all;
}

std::vector<const weights::ParameterGroup*> Connectors::pass() const {
  std::vector<const weights::ParameterGroup*> order = video.groups();
  for (const auto* group : audio.groups()) order.push_back(group);
  return order;
}

PaddedFeatures padded_left(TextFeatures features, std::int64_t tokens) {
  const std::int64_t real = features.video.size(0);
  if (real > tokens) {
    throw Error(ErrorKind::bad_input,
                fmt::format("a prompt of {} tokens does not fit {} positions", real, tokens),
                "shorten the prompt");
  }
  at::Tensor mask = at::zeros({tokens}, at::TensorOptions().dtype(at::kLong));
  mask.narrow(0, tokens - real, real).fill_(1);
  return {std::move(features), mask};
}

std::vector<TextContext> connect(const Connectors& connectors, weights::WeightSource& source,
                                 std::span<const PaddedFeatures> prompts, at::ScalarType compute_dtype) {
  at::NoGradGuard no_grad;
  std::vector<ConnectorRow> video_rows, audio_rows;
  for (const PaddedFeatures& prompt : prompts) {
    const TextFeatures& features = prompt.features;
    video_rows.push_back({features.video, features.video_padding, prompt.mask});
    audio_rows.push_back({features.audio, features.audio_padding, prompt.mask});
  }
  std::vector<at::Tensor> video = connect(connectors.video, source, video_rows, compute_dtype);
  std::vector<at::Tensor> audio = connect(connectors.audio, source, audio_rows, compute_dtype);
  std::vector<TextContext> contexts;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const at::Tensor seen = at::ones({1, prompts[i].mask.size(0)}, at::TensorOptions().dtype(at::kLong));
    contexts.push_back({.video_text = video[i], .audio_text = audio[i], .mask = seen});
  }
  return contexts;
}

std::int64_t connectors_memory(const ConnectorsConfig& config, std::span<const std::int64_t> lengths,
                               at::ScalarType compute_dtype) {
  const std::int64_t all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const std::int64_t video_text =
      all * config.video.width() * static_cast<std::int64_t>(elementSize(compute_dtype));
  return std::max(connector_memory(config.video, lengths, compute_dtype),
                  video_text + connector_memory(config.audio, lengths, compute_dtype));
}

TextContext text_context(const Connectors& connectors, weights::WeightSource& source,
                         const at::Tensor& states, const at::Tensor& mask, at::ScalarType compute_dtype) {
  at::NoGradGuard no_grad;
  std::vector<PaddedFeatures> prompts;
  for (TextFeatures& features :
       extract_features(connectors.projections, source, states, mask, compute_dtype)) {
    const auto row = static_cast<std::int64_t>(prompts.size());
    prompts.push_back({std::move(features), mask[row]});
  }
  std::vector<at::Tensor> video, audio, seen;
  for (TextContext& context : connect(connectors, source, prompts, compute_dtype)) {
    video.push_back(std::move(context.video_text));
    audio.push_back(std::move(context.audio_text));
    seen.push_back(std::move(context.mask));
  }
  return {at::cat(video), at::cat(audio), at::cat(seen)};
}

}  // namespace sluice::ltx2
