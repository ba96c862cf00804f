#include "pipeline/prepared_run.h"

#include "pipeline/backends.h"
#include "pipeline/output_check.h"
#include "pipeline/request_check.h"

#include <sluice/error.h>
#include <sluice/memory.h>

#include <fmt/format.h>

namespace sluice::pipeline {
namespace {

// The prompt as given, or its states; with tokens where there is a tokenizer to make them.
TextJob job_for(const std::string& prompt, const std::optional<InjectedPrompt>& injected,
                const ltx2::Tokenizer* tokenizer, std::string_view which,
                std::vector<std::string>& warnings) {
  if (injected) return {.injected = injected};
  if (!tokenizer) return {};
  TextJob job{.tokens = tokenize(*tokenizer, prompt)};
  if (std::string warning = cut_warning(*job.tokens, which); !warning.empty()) warnings.push_back(warning);
  return job;
}

void prepare_text(PreparedRun& run, Purpose purpose) {
  const bool negative = sampling::needed_passes(run.settings.guidance).negative;
  const bool needs_encoder = !run.injection.positive || (negative && !run.injection.negative);
  std::optional<ltx2::Tokenizer> tokenizer;
  if (needs_encoder) {
    run.encoder = std::make_unique<TextEncoder>(
        open_text_encoder(text_encoder_folder(run.request.text_encoder, run.request.model)));
    ltx2::require_text_encoder(run.models.connectors->config(),
                               {.name = run.encoder->folder.string(),
                                .hidden_size = run.encoder->model->config.hidden_size,
                                .states = run.encoder->model->config.states()});
    if (purpose == Purpose::generate) {
      tokenizer = ltx2::Tokenizer::load(run.encoder->tokenizer);
    }
  }
  const ltx2::Tokenizer* loaded = tokenizer ? &*tokenizer : nullptr;
  auto& warnings = run.settings.warnings;
  run.positive = job_for(run.request.prompt, run.injection.positive, loaded, "prompt", warnings);
  if (negative) {
    run.negative =
        job_for(run.request.negative_prompt, run.injection.negative, loaded, "negative prompt", warnings);
  }
}

}  // namespace

PreparedRun prepare(const Request& request, const Outputs& outputs, Purpose purpose) {
  if (purpose == Purpose::generate) check_outputs(outputs, request);
  check_values(request);
  PreparedRun run{.request = request, .outputs = outputs};
  run.models =
      open_models(request.model, run.decodes_sound() || purpose == Purpose::plan ? Sound::yes : Sound::no);
  run.settings = settle(request, run.models);
  run.threads = use_threads(run.settings.threads);
  if (request.decode_latents.empty()) {
    run.injection = read_injection(request.inject, run.settings,
                                   purpose == Purpose::plan ? Values::shapes_only : Values::read);
    prepare_text(run, purpose);
  } else if (!run.decodes() && purpose == Purpose::generate) {
    throw Error(ErrorKind::usage, "--decode-latents without anything to decode to", "add -o out.mp4");
  }
  if (purpose == Purpose::generate) {
    require_fit(needs_of(run, computes_in_place(request.read_backend)), available_memory());
  }
  return run;
}

std::vector<PhaseNeeds> needs_of(const PreparedRun& run, bool mapped) {
  return phase_needs({.models = run.models,
                      .encoder = run.encoder.get(),
                      .settings = run.settings,
                      .mapped = mapped,
                      .sound = run.models.vocoder && run.outputs.sound});
}

nlohmann::json choices_json(const std::vector<Choice>& choices) {
  nlohmann::json list = nlohmann::json::array();
  for (const Choice& choice : choices) {
    list.push_back({{"what", choice.what}, {"value", choice.value}, {"reason", choice.reason}});
  }
  return list;
}

}  // namespace sluice::pipeline
