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

// The prompts of a request, sorted by where their states come from.
struct Prompts {
  std::vector<ltx2::GemmaInput> computed;
  std::vector<std::size_t> computed_jobs;  // which job each of them is
  std::vector<ltx2::ReadyStates> injected;
  std::vector<std::size_t> injected_jobs;
  std::vector<std::int64_t> tokens;  // of every job
};

Prompts sort_prompts(const ltx2::ConnectorsConfig& config, std::span<const TextJob> jobs,
                     at::ScalarType dtype) {
  Prompts prompts;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (const auto& given = jobs[i].injected) {
      prompts.injected.push_back(ltx2::ready_states(config, given->embeds, given->mask).front());
      prompts.injected_jobs.push_back(i);
      prompts.tokens.push_back(prompts.injected.back().tokens());
    } else {
      prompts.computed.push_back(gemma_input(jobs[i].tokens.value(), dtype));
      prompts.computed_jobs.push_back(i);
      prompts.tokens.push_back(static_cast<std::int64_t>(jobs[i].tokens->ids.size()));
    }
  }
  return prompts;
}

// States are normed and kept for the projections as they are made.
void add_states(const Prompts& prompts, const TextEncoder* encoder, Backends& backends, std::int64_t states,
                ltx2::FeatureAccumulator& features, const LayerObserver& observer) {
  auto add_injected = [&](std::int64_t state) {
    for (std::size_t i = 0; i < prompts.injected.size(); ++i)
      features.add(prompts.injected_jobs[i], state, prompts.injected[i].state(state));
  };
  if (prompts.computed.empty()) {
    for (std::int64_t state = 0; state < states; ++state) add_injected(state);
    return;
  }
  const auto order = encoder->model->pass();
  auto source = backends.source(encoder->table, order);
  ltx2::hidden_states(*encoder->model, *source, prompts.computed,
                      [&](std::size_t prompt, std::int64_t state, const at::Tensor& hidden) {
                        sampling::check_finite(
                            hidden, fmt::format("the text encoder's state {} of {}", state, states));
                        features.add(prompts.computed_jobs[prompt], state, hidden);
                        if (prompt + 1 < prompts.computed.size()) return;
                        add_injected(state);
                        if (observer) observer(state + 1, states);
                      });
}

// Where each job's tokens lie in its row.
ltx2::PaddedFeatures padded(const TextJob& job, ltx2::TextFeatures features) {
  if (job.injected) return {std::move(features), job.injected->mask[0]};
  return ltx2::padded_left(std::move(features), kTextTokens);
}

// Through text encoder and projections, whose weights are let go then.
std::vector<ltx2::PaddedFeatures> features_of(const ModelSet& models, const TextEncoder* encoder,
                                              Backends& backends, std::span<const TextJob> jobs,
                                              at::ScalarType dtype, const LayerObserver& observer,
                                              const ltx2::FeatureLimits& limits) {
  const ltx2::TextProjections& projections = models.connectors->projections;
  const auto order = projections.groups();
  auto source = backends.source(models.table(ComponentKind::connectors), order);
  const Prompts prompts = sort_prompts(projections.config, jobs, dtype);
  ltx2::FeatureAccumulator features(projections, *source, prompts.tokens, dtype, limits);
  add_states(prompts, encoder, backends, projections.config.text_proj_in_factor, features, observer);
  std::vector<ltx2::PaddedFeatures> rows;
  for (ltx2::TextFeatures& prompt : features.finish())
    rows.push_back(padded(jobs[rows.size()], std::move(prompt)));
  return rows;
}

}  // namespace

std::int64_t TextJob::length() const {
  constexpr std::int64_t kUnknown = 512;
  if (tokens) return static_cast<std::int64_t>(tokens->ids.size());
  return injected ? injected->embeds.size(1) : kUnknown;
}

PromptTokens tokenize(const ltx2::Tokenizer& tokenizer, const std::string& prompt) {
  auto encoded = tokenizer.encode_truncated(prompt, kTextTokens);
  return {.ids = std::move(encoded.ids), .tokens = encoded.tokens};
}

std::string cut_warning(const PromptTokens& tokens, std::string_view which) {
  if (tokens.tokens <= tokens.ids.size()) return {};
  return fmt::format("the {} has {} tokens: the first {} are kept, {} are dropped", which, tokens.tokens,
                     tokens.ids.size(), tokens.tokens - tokens.ids.size());
}

ltx2::GemmaInput gemma_input(const PromptTokens& tokens, at::ScalarType dtype) {
  return {.ids = tokens.ids,
          .position_offset = kTextTokens - static_cast<std::int64_t>(tokens.ids.size()),
          .compute_dtype = dtype};
}

std::vector<ltx2::TextContext> encode_text(const ModelSet& models, const TextEncoder* encoder,
                                           Backends& backends, std::span<const TextJob> jobs,
                                           at::ScalarType dtype, const LayerObserver& observer,
                                           const ltx2::FeatureLimits& limits) {
  c10::InferenceMode no_graph;
  const weights::ComponentTable& table = models.table(ComponentKind::connectors);
  const std::vector<ltx2::PaddedFeatures> rows =
      features_of(models, encoder, backends, jobs, dtype, observer, limits);
  const auto order = models.connectors->pass();
  auto connectors = backends.source(table, order);
  std::vector<ltx2::TextContext> contexts = ltx2::connect(*models.connectors, *connectors, rows, dtype);
  for (const ltx2::TextContext& context : contexts) {
    sampling::check_finite(context.video_text, "the text context of the video");
    sampling::check_finite(context.audio_text, "the text context of the sound");
  }
  kernels::release_scratch();
  return contexts;
}

}  // namespace sluice::pipeline
