#include "pipeline/prepared_run.h"

#include "base/allocator.h"
#include "base/system_memory.h"
#include "base/text.h"
#include "kernels/attention.h"
#include "kernels/memory_pool.h"
#include "models/ltx2/files/lora_targets.h"
#include "models/ltx2/files/version.h"
#include "pipeline/encode_conditions.h"
#include "pipeline/output_check.h"
#include "pipeline/remedy.h"
#include "pipeline/request_check.h"
#include "weights/quantized.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>

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
  const bool negative = sampling::needed_passes(run.settings.stages.front().guidance).negative;
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

namespace {

ModelNeeds needs_of(const PreparedRun& run, Purpose purpose) {
  const Request& request = run.request;
  return {.sound = purpose == Purpose::plan
                       ? request.audio.empty() && run.outputs.sound && request.streams != Streams::video
                       : run.decodes_sound(),
          .given_frames = !request.images.empty() || !request.videos.empty() || !request.references.empty(),
          .given_sound = run.media.sound || run.media.retaken,
          .modalities = modalities_of(request.streams)};
}

// Adapters of every stage, matched against the transformer.  Two that take references cannot agree on a size.
void open_adapters(PreparedRun& run) {
  const weights::LoraTargets targets = ltx2::lora_targets(run.models.transformer->groups());
  auto open = [&](const std::vector<Adapter>& adapters) {
    for (const Adapter& adapter : adapters) {
      run.adapters.push_back(
          std::make_unique<weights::LoraFile>(weights::open_lora(adapter.file, adapter.strength, targets)));
    }
  };
  open(run.request.adapters);
  if (run.request.two_stage) open(run.request.two_stage->adapters);
}

// What the adapters that take references say about them; 1 where none does.
std::int64_t reference_downscale(const PreparedRun& run) {
  std::optional<std::int64_t> downscale;
  for (std::size_t i = 0; i < run.request.adapters.size(); ++i) {
    const auto& own = run.adapters[i]->reference_downscale_factor;
    if (!own) continue;
    const std::string file = run.request.adapters[i].file.string();
    if (run.request.references.empty()) {
      throw Error(
          ErrorKind::usage,
          fmt::format("{}: it is a control adapter (IC-LoRA), which works on a reference clip of 1/{} "
                      "of the size, and none is given",
                      file, *own),
          "add --reference clip.mp4");
    }
    if (downscale && *downscale != *own) {
      throw Error(ErrorKind::usage,
                  fmt::format("{}: it takes references of 1/{} of the size, another adapter of 1/{}", file,
                              *own, *downscale),
                  "use one of them");
    }
    downscale = own;
  }
  if (!run.request.references.empty() && run.request.adapters.empty()) {
    throw Error(ErrorKind::usage, "--reference needs an adapter that takes references (IC-LoRA)",
                "add --lora FILE");
  }
  return downscale.value_or(1);
}

void warn_of_adapters(PreparedRun& run) {
  const auto takes_references = [](const auto& adapter) {
    return adapter->reference_downscale_factor.has_value();
  };
  if (!run.request.references.empty() && std::ranges::none_of(run.adapters, takes_references)) {
    run.settings.warnings.emplace_back(
        "none of the adapters says that it takes references: they are given at the clip's own size");
  }
  for (const auto& adapter : run.adapters) {
    const std::string file = adapter->checkpoint.path().string();
    if (!adapter->unmatched.empty()) {
      run.settings.warnings.push_back(fmt::format("{}: {} tensors fit no matrix of the model: {}", file,
                                                  adapter->unmatched.size(),
                                                  list_first(adapter->unmatched, 8)));
    }
    const std::string& version = run.models.files.version();
    if (!adapter->base_version.empty() && !version.empty() && adapter->base_version != version) {
      run.settings.warnings.push_back(fmt::format("{}: it was made for model version {}, this is {}", file,
                                                  adapter->base_version, version));
    }
  }
}

// The latents of this model, and a scale that two stages can have.
UpsamplerScale check_upsampler(const PreparedRun& run) {
  const ltx2::UpsamplerConfig& config = run.upsampler->model->config();
  const std::string file = run.request.two_stage->upsampler.string();
  const std::int64_t channels = run.models.video_decoder->config().latent_channels;
  if (config.in_channels != channels) {
    throw Error(ErrorKind::mismatch,
                fmt::format("{}: it upsamples latents of {} channels, {} has {}", file, config.in_channels,
                            run.request.model.string(), channels),
                "give the upsampler of this model's release");
  }
  const std::string &own = run.upsampler->version, &model = run.models.files.version();
  if (!own.empty() && !model.empty() && !ltx2::same_release(own, model)) {
    throw Error(
        ErrorKind::mismatch,
        fmt::format("{}: it is for model version {}, {} is {}", file, own, run.request.model.string(), model),
        "give the upsampler of this model's release");
  }
  const bool twice = config.scale_num == 2 * config.scale_den;
  if (config.spatial && !twice) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{}: its factor is {}/{}, two stages need 2", file, config.scale_num, config.scale_den),
        "give the x2 upsampler");
  }
  return {.space = config.spatial ? 2 : 1, .time = config.temporal ? 2 : 1};
}

// Adapters and upsampler, which the settings depend on.
void open_companions(PreparedRun& run) {
  if (!run.request.decode_latents.empty()) return;
  open_adapters(run);
  run.reference_downscale = reference_downscale(run);
  if (!run.request.two_stage) return;
  run.upsampler =
      std::make_unique<ltx2::UpsamplerFile>(ltx2::open_upsampler(run.request.two_stage->upsampler));
  run.upsampler_scale = check_upsampler(run);
}

}  // namespace

std::vector<const weights::LoraFile*> PreparedRun::adapters_of(std::size_t stage) const {
  const std::size_t count = stage == 0 ? request.adapters.size() : adapters.size();
  std::vector<const weights::LoraFile*> found;
  for (std::size_t i = 0; i < count; ++i) found.push_back(adapters[i].get());
  return found;
}

PreparedRun prepare(const Request& request, const Outputs& outputs, Purpose purpose) {
  check_values(request);
  if (purpose == Purpose::generate) check_outputs(outputs, request);
  PreparedRun run{.request = request, .outputs = outputs};
  if (request.decode_latents.empty()) run.media = look_at_media(request);
  run.models = open_models(request.model, needs_of(run, purpose));
  run.request.frames = frames_of(request, run.media, run.models.compression().frames);
  check_given_length(request, run.request.frames);
  open_companions(run);
  run.settings = settle(run.request, run.models, {run.media, run.reference_downscale, run.upsampler_scale});
  warn_of_adapters(run);
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
    if (!run.settings.missing.empty())
      throw Error(ErrorKind::usage, run.settings.missing.front(), "or take a distilled model");
    if (run.plan.too_large()) refuse(inputs_of(run), run.plan);
    check_scales(run);
    check_media(run.request, run.settings.conditions);
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
          .upsampler = run.upsampler.get(),
          .adapters = {run.adapters_of(0), run.adapters_of(1)},
          .request = run.request,
          .settings = run.settings,
          .settle = {run.media, run.reference_downscale, run.upsampler_scale},
          .prompt_tokens = std::move(tokens),
          .sound = run.models.vocoder && run.outputs.sound && (all || run.decodes_sound()),
          .video = run.request.streams != Streams::audio && (all || run.decodes_video()),
          .video_file = all || !run.outputs.video.empty()};
}

nlohmann::json choices_json(const std::vector<Choice>& choices) {
  nlohmann::json list = nlohmann::json::array();
  for (const Choice& choice : choices) {
    list.push_back({{"what", choice.what}, {"value", choice.value}, {"reason", choice.reason}});
  }
  return list;
}

}  // namespace sluice::pipeline
