// A prompt as the transformer, or the outside world, sees it.
#include "base/temporary_file.h"
#include "pipeline/backends.h"
#include "pipeline/output_check.h"
#include "pipeline/settings.h"
#include "pipeline/text_phase.h"
#include "weights/tensor_file.h"

#include <sluice/sluice.h>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluice {
namespace pipeline {
namespace {

at::Tensor as_tensor(const std::vector<ltx2::TokenId>& ids) {
  at::Tensor tensor =
      at::empty({1, static_cast<std::int64_t>(ids.size())}, at::TensorOptions().dtype(at::kLong));
  std::copy(ids.begin(), ids.end(), tensor.data_ptr<std::int64_t>());
  return tensor;
}

LayerObserver observer(Progress* progress, const CancelToken* cancel) {
  return [=](std::int64_t done, std::int64_t total) {
    if (progress) progress->at("text", done, total, "layers");
    if (cancel && cancel->cancelled())
      throw Error(ErrorKind::interrupted, "interrupted", "run the command again");
  };
}

// [1, tokens, channels, states], f32.
at::Tensor states_of(const TextEncoder& encoder, Backends& backends, const PromptTokens& tokens,
                     at::ScalarType dtype, const LayerObserver& observe) {
  c10::InferenceMode no_graph;
  const auto order = encoder.model->pass();
  auto source = backends.source(encoder.table, order);
  const ltx2::GemmaInput input = gemma_input(tokens, dtype);
  const auto count = static_cast<std::int64_t>(tokens.ids.size());
  const auto& config = encoder.model->config;
  at::Tensor stacked =
      at::empty({1, count, config.hidden_size, config.states()}, at::TensorOptions().dtype(at::kFloat));
  ltx2::hidden_states(*encoder.model, *source, std::span(&input, 1),
                      [&](std::size_t, std::int64_t state, const at::Tensor& hidden) {
                        stacked.select(0, 0).select(-1, state).copy_(hidden);
                        observe(state + 1, config.states());
                      });
  backends.check();
  return stacked;
}

}  // namespace
}  // namespace pipeline

std::string encode(const EncodeRequest& request, Progress* progress, const CancelToken* cancel) {
  using namespace pipeline;
  check_target(request.output, request.overwrite ? Existing::overwrite : Existing::refuse);
  refuse_input_as_output(request.output, {request.model, request.text_encoder});
  if (request.threads < 0) {
    throw Error(ErrorKind::usage, fmt::format("--threads {} is impossible", request.threads),
                "give a count, or leave it out");
  }
  if (!request.hidden_states && request.model.empty()) {
    throw Error(ErrorKind::usage, "a context needs the model's connectors",
                "add --model FILE, or --hidden-states for the text encoder's own states");
  }
  const int threads = use_threads(request.threads);
  const TextEncoder encoder = open_text_encoder(text_encoder_folder(request.text_encoder, request.model));
  const ltx2::Tokenizer tokenizer = ltx2::Tokenizer::load(encoder.tokenizer);
  const PromptTokens tokens = tokenize(tokenizer, request.prompt);
  const Choice dtype = choose_dtype(request.compute_dtype, encoder.table);
  Backends backends({.backend = request.read_backend, .cache = request.cache}, cancel);

  weights::NamedTensors results = {{"input_ids", as_tensor(tokens.ids)}};
  if (request.hidden_states) {
    results.emplace_back("hidden_states", states_of(encoder, backends, tokens, scalar_type(dtype),
                                                    observer(progress, cancel)));
  } else {
    const ModelSet models = open_models(request.model, {.sound = false});
    ltx2::require_text_encoder(models.connectors->config(), {.name = encoder.folder.string(),
                                                             .hidden_size = encoder.model->config.hidden_size,
                                                             .states = encoder.model->config.states()});
    const TextJob job{.tokens = tokens};
    const ltx2::TextContext context = encode_text(models, &encoder, backends, std::span(&job, 1),
                                                  scalar_type(dtype), observer(progress, cancel))
                                          .front();
    backends.check();
    results.emplace_back("context.video", context.video_text.to(at::kFloat));
    results.emplace_back("context.audio", context.audio_text.to(at::kFloat));
    results.emplace_back("context.mask", context.mask.to(at::kLong));
  }
  weights::write_tensors(request.output, results);

  nlohmann::json summary = {{"tokens", tokens.tokens},
                            {"tokens_kept", tokens.ids.size()},
                            {"compute_dtype", dtype.value},
                            {"threads", threads},
                            {"warnings", nlohmann::json::array()},
                            {"tensors", nlohmann::json::object()}};
  if (std::string warning = cut_warning(tokens, "prompt"); !warning.empty())
    summary["warnings"].push_back(warning);
  for (const auto& [name, tensor] : results) summary["tensors"][name] = tensor.sizes().vec();
  return summary.dump(2);
}

}  // namespace sluice
