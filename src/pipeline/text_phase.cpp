#include "pipeline/text_phase.h"

#include "kernels/scratch.h"
#include "sampling/finite.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

namespace sluice::pipeline {
namespace {

using ltx2::ComponentKind;

// States are normed and laid into the projections' input as they are made, so that the 49 of them are never
// all kept.
ltx2::TextFeatures features_of(const ModelSet& models, const TextEncoder& encoder, Backends& backends,
                               weights::WeightSource& connectors, const PromptTokens& tokens,
                               at::ScalarType dtype, const LayerObserver& observer) {
  auto source = backends.source(encoder.table);
  const auto count = static_cast<std::int64_t>(tokens.ids.size());
  ltx2::FeatureAccumulator features(models.connectors->projections, connectors, count, dtype);
  const std::int64_t states = encoder.model->config.states();
  ltx2::hidden_states(*encoder.model, *source,
                      {.ids = tokens.ids, .position_offset = kTextTokens - count, .compute_dtype = dtype},
                      [&](std::int64_t state, const at::Tensor& hidden) {
                        sampling::check_finite(
                            hidden, fmt::format("the text encoder's state {} of {}", state, states));
                        features.add(state, hidden);
                        if (observer) observer(state + 1, states);
                      });
  return features.finish();
}

}  // namespace

PromptTokens tokenize(const ltx2::Tokenizer& tokenizer, const std::string& prompt) {
  auto encoded = tokenizer.encode_truncated(prompt, kTextTokens);
  return {.ids = std::move(encoded.ids), .tokens = encoded.tokens};
}

std::string cut_warning(const PromptTokens& tokens, std::string_view which) {
  if (tokens.tokens <= tokens.ids.size()) return {};
  return fmt::format("the {} has {} tokens: the first {} are kept, {} are dropped", which, tokens.tokens,
                     tokens.ids.size(), tokens.tokens - tokens.ids.size());
}

ltx2::TextContext encode_text(const ModelSet& models, const TextEncoder* encoder, Backends& backends,
                              const TextJob& job, at::ScalarType dtype, const LayerObserver& observer) {
  c10::InferenceMode no_graph;
  auto connectors = backends.source(models.table(ComponentKind::connectors));
  ltx2::TextContext context;
  if (job.injected) {
    context =
        ltx2::text_context(*models.connectors, *connectors, job.injected->embeds, job.injected->mask, dtype);
  } else {
    const ltx2::TextFeatures features =
        features_of(models, *encoder, backends, *connectors, job.tokens.value(), dtype, observer);
    context = ltx2::connect(*models.connectors, *connectors, std::span(&features, 1), kTextTokens, dtype);
  }
  sampling::check_finite(context.video_text, "the text context of the video");
  sampling::check_finite(context.audio_text, "the text context of the sound");
  kernels::release_scratch();
  return context;
}

}  // namespace sluice::pipeline
