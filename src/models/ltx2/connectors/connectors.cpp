#include "models/ltx2/connectors/connectors.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

namespace sluice::ltx2 {
namespace {

TextContext connect_masked(const Connectors& connectors, weights::WeightSource& source,
                           std::span<const TextFeatures> prompts, const at::Tensor& mask,
                           at::ScalarType compute_dtype) {
  std::vector<at::Tensor> video_rows, audio_rows;
  for (const TextFeatures& features : prompts) {
    video_rows.push_back(features.video);
    audio_rows.push_back(features.audio);
  }
  if (prompts.empty()) throw Error(ErrorKind::internal, "the connectors were given no prompt");
  const TextFeatures& any = prompts.front();
  at::Tensor video = connect(
      connectors.video, source,
      {.rows = video_rows, .padding = any.video_padding, .mask = mask, .compute_dtype = compute_dtype});
  at::Tensor audio = connect(
      connectors.audio, source,
      {.rows = audio_rows, .padding = any.audio_padding, .mask = mask, .compute_dtype = compute_dtype});
  return {video, audio, at::ones(mask.sizes(), at::TensorOptions().dtype(at::kLong))};
}

at::Tensor left_padded_mask(std::span<const TextFeatures> prompts, std::int64_t tokens) {
  const auto batch = static_cast<std::int64_t>(prompts.size());
  at::Tensor mask = at::zeros({batch, tokens}, at::TensorOptions().dtype(at::kLong));
  for (std::int64_t row = 0; row < batch; ++row) {
    const std::int64_t real = prompts[static_cast<std::size_t>(row)].video.size(0);
    if (real > tokens) {
      throw Error(ErrorKind::bad_input,
                  fmt::format("a prompt of {} tokens does not fit {} positions", real, tokens),
                  "shorten the prompt");
    }
    mask[row].narrow(0, tokens - real, real).fill_(1);
  }
  return mask;
}

}  // namespace

Connectors::Connectors(const ConnectorsConfig& config)
    : projections(config), video(config.video, "video_connector"), audio(config.audio, "audio_connector") {}

std::vector<const weights::ParameterGroup*> Connectors::groups() const {
  std::vector<const weights::ParameterGroup*> all = {&projections.group};
  for (const Connector* connector : {&video, &audio}) {
    for (const auto* group : connector->groups()) all.push_back(group);
  }
  return all;
}

TextContext connect(const Connectors& connectors, weights::WeightSource& source,
                    std::span<const TextFeatures> prompts, std::int64_t tokens,
                    at::ScalarType compute_dtype) {
  at::NoGradGuard no_grad;
  return connect_masked(connectors, source, prompts, left_padded_mask(prompts, tokens), compute_dtype);
}

TextContext text_context(const Connectors& connectors, weights::WeightSource& source,
                         const at::Tensor& states, const at::Tensor& mask, at::ScalarType compute_dtype) {
  at::NoGradGuard no_grad;
  std::vector<TextFeatures> prompts =
      extract_features(connectors.projections, source, states, mask, compute_dtype);
  return connect_masked(connectors, source, prompts, mask, compute_dtype);
}

}  // namespace sluice::ltx2
