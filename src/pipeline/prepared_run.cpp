#include "pipeline/prepared_run.h"

#include "base/allocator.h"
#include "base/system_memory.h"
#include "kernels/attention.h"
#include "kernels/memory_pool.h"
#include "pipeline/output_check.h"
#include "pipeline/remedy.h"
#include "pipeline/request_check.h"
#include "weights/quantized.h"

#include <sluice/error.h>

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
    for (const std::string& warning : run.encoder->warnings) run.settings.warnings.push_back(warning);
    if (purpose == Purpose::generate || !run.request.prompt.empty()) {
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

void check_scales(const PreparedRun& run) {
  for (ltx2::ComponentKind kind : {ltx2::ComponentKind::connectors, ltx2::ComponentKind::transformer})
    check_quantized(run.models.table(kind), weights::BlockScales::skip);
  if (run.encoder) check_quantized(run.encoder->table, weights::BlockScales::skip);
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
  kernels::set_attention_budget(request.attention_budget.value_or(kernels::AttentionLimits{}.scratch));
  if (purpose == Purpose::generate) kernels::install_memory_pool();
  if (request.decode_latents.empty()) {
    run.injection = read_injection(request.inject, run.settings,
                                   purpose == Purpose::plan ? Values::shapes_only : Values::read);
    prepare_text(run, purpose);
  } else if (!run.decodes() && purpose == Purpose::generate) {
    throw Error(ErrorKind::usage, "--decode-latents without anything to decode to", "add -o out.mp4");
  }
  give_back_freed_memory();  // of the tokenizer
  run.plan = plan_run(inputs_of(run), memory_budget(request.memory_limit), anonymous_memory());
  for (const std::string& warning : run.plan.warnings) run.settings.warnings.push_back(warning);
  if (purpose == Purpose::generate) {
    if (run.plan.too_large()) refuse(inputs_of(run), run.plan);
    check_scales(run);
  }
  return run;
}

RunInputs inputs_of(const PreparedRun& run) {
  // Whoever only plans has said nothing of outputs: everything is made.
  const bool all = !run.decodes();
  std::vector<std::int64_t> tokens;
  for (const auto& job : {run.positive, run.negative}) {
    if (job) tokens.push_back(job->length());
  }
  return {.models = run.models,
          .encoder = run.encoder.get(),
          .request = run.request,
          .settings = run.settings,
          .prompt_tokens = std::move(tokens),
          .sound = run.models.vocoder && run.outputs.sound && (all || run.decodes_sound()),
          .video = all || run.decodes_video()};
}

nlohmann::json choices_json(const std::vector<Choice>& choices) {
  nlohmann::json list = nlohmann::json::array();
  for (const Choice& choice : choices) {
    list.push_back({{"what", choice.what}, {"value", choice.value}, {"reason", choice.reason}});
  }
  return list;
}

}  // namespace sluice::pipeline
