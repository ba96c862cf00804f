#include "pipeline/settings.h"

#include "base/cpu_path.h"
#include "pipeline/request_check.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace sluice::pipeline {
namespace {

constexpr std::int64_t kDevSteps = 30;
constexpr std::int64_t kStgBlock = 28;  // of the 48 of LTX-2.3
constexpr sampling::GuidanceScales kDevVideo{.cfg = 3.0, .stg = 1.0, .modality = 3.0, .rescale = 0.7};
constexpr sampling::GuidanceScales kDevAudio{.cfg = 7.0, .stg = 1.0, .modality = 3.0, .rescale = 0.7};

Choice cpu_choice() {
  const char* asked = std::getenv("SLUICE_CPU");
  return {"cpu", std::string(name(cpu_path())),
          asked && *asked ? "asked for with SLUICE_CPU" : "the best this processor has"};
}

Choice choose_variant(const Request& request, const ltx2::ModelFiles& files,
                      const std::optional<sampling::SchedulerConfig>& scheduler) {
  if (request.variant != Variant::automatic) {
    return {"variant", request.variant == Variant::dev ? "dev" : "distilled", "asked for"};
  }
  if (scheduler) {
    return scheduler->use_dynamic_shifting
               ? Choice{"variant", "dev", "the scheduler's config shifts by the number of tokens"}
               : Choice{"variant", "distilled", "the scheduler's config shifts nothing"};
  }
  std::string name = std::filesystem::absolute(files.path()).lexically_normal().filename().string();
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.find("distilled") != std::string::npos) return {"variant", "distilled", "the file's name says so"};
  if (name.find("-dev") != std::string::npos || name.find("_dev") != std::string::npos) {
    return {"variant", "dev", "the file's name says so"};
  }
  if (request.steps)
    return {"variant", "dev", "--steps was given, and only the dev schedule has a free number of steps"};
  return {"variant", "distilled", "nothing says otherwise"};
}

sampling::Schedule choose_schedule(const Request& request, Variant variant,
                                   const std::optional<sampling::SchedulerConfig>& scheduler,
                                   std::int64_t tokens) {
  if (!request.sigmas.empty() && request.steps) {
    throw Error(ErrorKind::usage, "--steps and --sigmas contradict each other", "give one of them");
  }
  if (!request.sigmas.empty())
    return sampling::make_schedule(sampling::distilled_scheduler(), request.sigmas, tokens);
  if (variant == Variant::distilled) {
    const auto list = sampling::distilled_sigmas();
    if (request.steps && *request.steps != static_cast<std::int64_t>(list.size())) {
      throw Error(ErrorKind::usage,
                  fmt::format("--steps {}: a distilled model has a fixed list of {} sigmas", *request.steps,
                              list.size()),
                  "leave out --steps, give --sigmas, or say --variant dev if the model is not distilled");
    }
    return sampling::make_schedule(sampling::distilled_scheduler(), list, tokens);
  }
  const auto config = scheduler && scheduler->use_dynamic_shifting ? *scheduler : sampling::dev_scheduler();
  return sampling::make_schedule(config, sampling::evenly_spaced_sigmas(request.steps.value_or(kDevSteps)),
                                 tokens);
}

sampling::GuidanceScales scales(const GuidanceRequest& asked, const sampling::GuidanceScales& fallback) {
  return {.cfg = asked.cfg.value_or(fallback.cfg),
          .stg = asked.stg.value_or(fallback.stg),
          .modality = asked.modality.value_or(fallback.modality),
          .rescale = asked.rescale.value_or(fallback.rescale)};
}

// A scale given for the video alone holds for the sound too.
GuidanceRequest audio_request(const Request& request) {
  auto or_video = [](const std::optional<double>& audio, const std::optional<double>& video) {
    return audio ? audio : video;
  };
  const auto& a = request.audio_guidance;
  const auto& v = request.guidance;
  return {or_video(a.cfg, v.cfg), or_video(a.stg, v.stg), or_video(a.modality, v.modality),
          or_video(a.rescale, v.rescale)};
}

std::set<std::int64_t> choose_stg_blocks(const Request& request, const sampling::Guidance& guidance,
                                         std::int64_t layers) {
  if (!sampling::needed_passes(guidance).perturbed) return {};
  std::set<std::int64_t> blocks(request.stg_blocks.begin(), request.stg_blocks.end());
  if (blocks.empty()) blocks.insert(kStgBlock);
  if (*blocks.begin() < 0 || *blocks.rbegin() >= layers) {
    throw Error(ErrorKind::usage,
                fmt::format("--stg-blocks names block {}, but the transformer has blocks 0 to {}",
                            *blocks.begin() < 0 ? *blocks.begin() : *blocks.rbegin(), layers - 1),
                fmt::format("name blocks of this model, such as --stg-blocks {}, or turn it off with --stg 0",
                            layers * 28 / 48));
  }
  return blocks;
}

}  // namespace

Choice choose_dtype(ComputeDtype asked, const weights::ComponentTable& table) {
  if (asked != ComputeDtype::automatic)
    return {"compute-dtype", asked == ComputeDtype::f32 ? "f32" : "bf16", "asked for"};
  const bool stored = std::any_of(table.tensors.begin(), table.tensors.end(), [](const auto& entry) {
    return entry.second.dtype == Dtype::BF16 && entry.second.shape.size() == 2;
  });
  if (!stored) return {"compute-dtype", "f32", "the weights are not stored in bf16"};
  if (cpu_path() >= CpuPath::avx512_bf16)
    return {"compute-dtype", "bf16", fmt::format("the CPU has {}", name(cpu_path()))};
  return {"compute-dtype", "f32", "the CPU has no bf16 arithmetic: weights are widened a tile at a time"};
}

at::ScalarType scalar_type(const Choice& dtype) {
  return dtype.value == "bf16" ? at::kBFloat16 : at::kFloat;
}

Choice choose_threads(int asked, const ltx2::TransformerConfig& transformer, std::int64_t video_tokens) {
  // A product of this size takes a core about a millisecond; waking and gathering threads costs up to as much
  // on a busy machine (measured with a second program beside: a step of 1 MFLOP products took 10 to 100 times
  // as long on two threads).
  constexpr std::int64_t kSmallProduct = 128'000'000;
  if (asked > 0) return {"threads", std::to_string(asked), "asked for"};
  const std::int64_t width = transformer.video.width();
  if (2 * video_tokens * width * 4 * width < kSmallProduct) {
    return {"threads", "1", "the products of a step are too small to share"};
  }
  return {"threads", std::to_string(std::max(1u, std::thread::hardware_concurrency())), "all cores"};
}

int use_threads(int asked) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = asked > 0 ? asked : cores;
  at::set_num_threads(threads);
  return threads;
}

namespace {

sampling::VideoLatentShape video_shape(const Request& request, const ModelSet& models,
                                       UpsamplerScale smaller) {
  const auto compression = models.compression();
  return {.channels = models.transformer->config().video.in_channels,
          .frames = (sampling::latent_frames(request.frames, compression) - 1) / smaller.time + 1,
          .height = request.height / compression.pixels / smaller.space,
          .width = request.width / compression.pixels / smaller.space};
}

constexpr UpsamplerScale kSame{.space = 1, .time = 1};

// Guidance of passes that cannot run, or would change nothing, is off.
sampling::Guidance possible(sampling::Guidance guidance, const Request& request) {
  if (request.streams != Streams::both) guidance.video.modality = guidance.audio.modality = 1;
  if (request.streams == Streams::video || !request.audio.empty()) guidance.audio = {};
  if (request.streams == Streams::audio) guidance.video = {};
  return guidance;
}

// Denoising from noise, with all that a request says about it.
StageSettings first_stage(const Request& request, const ModelSet& models, const Settings& settings,
                          const std::optional<sampling::SchedulerConfig>& scheduler, UpsamplerScale smaller) {
  StageSettings stage;
  stage.video = video_shape(request, models, smaller);
  stage.fps = request.fps.value() / static_cast<double>(smaller.time);
  stage.tokens_beside = settings.conditions.tokens_beside(stage.video, models.compression());
  stage.schedule = choose_schedule(request, settings.variant, scheduler, stage.tokens());
  const bool dev = settings.variant == Variant::dev && request.sigmas.empty();
  stage.guidance =
      possible({.video = scales(request.guidance, dev ? kDevVideo : sampling::GuidanceScales{}),
                .audio = scales(audio_request(request), dev ? kDevAudio : sampling::GuidanceScales{})},
               request);
  stage.stg_blocks = choose_stg_blocks(request, stage.guidance, models.transformer->config().num_layers);
  return stage;
}

// Refining: the end of the distilled list, no guidance.
StageSettings second_stage(const Request& request, const ModelSet& models, const Settings& settings) {
  StageSettings stage;
  stage.video = video_shape(request, models, kSame);
  stage.fps = request.fps.value();
  stage.tokens_beside = settings.conditions.tokens_beside(stage.video, models.compression());
  stage.schedule =
      sampling::make_schedule(sampling::distilled_scheduler(), sampling::stage_2_sigmas(), stage.tokens());
  return stage;
}

void check_references(const Request& request, const StageSettings& stage, std::int64_t downscale) {
  if (request.references.empty()) return;
  if (stage.video.height % downscale == 0 && stage.video.width % downscale == 0) return;
  throw Error(ErrorKind::usage,
              fmt::format("the adapter takes references of 1/{} of the size, and {} x {} latents cannot be "
                          "divided by that",
                          downscale, stage.video.height, stage.video.width),
              fmt::format("ask for a width and height that are multiples of {}",
                          32 * downscale * (request.two_stage ? 2 : 1)));
}

// Half as many frames have other places: only the first one is the same.
void check_half_rate(const Request& request, const Settings& settings) {
  const std::int64_t latents = settings.video.frames;
  if (latents % 2 == 0) {
    throw Error(ErrorKind::usage,
                fmt::format("--frames {}: an upsampler that doubles the frames makes 16k+1", request.frames),
                fmt::format("use {} or {}", request.frames - 8, request.frames + 8));
  }
  for (const PlannedFrames& frames : settings.conditions.frames) {
    if (frames.source == FrameSource::image && frames.frame == 0) continue;
    throw Error(
        ErrorKind::usage,
        fmt::format("{}: with an upsampler that doubles the frames only --image at frame 0 can be given",
                    frames.file.string()),
        "use a spatial upsampler");
  }
}

// Nothing in the tensors of a dev model makes it refine in three steps.
void check_second_stage(const Request& request, Settings& settings) {
  if (settings.variant == Variant::distilled || !request.two_stage->adapters.empty()) return;
  settings.missing.emplace_back(
      "the second stage of a dev model needs the distilled adapter: --stage-2-lora "
      "ltx-2.3-22b-distilled-lora-384-1.1.safetensors");
}

void settle_stages(const Request& request, const ModelSet& models, const SettleInputs& inputs,
                   Settings& settings) {
  std::optional<sampling::SchedulerConfig> scheduler;
  if (const auto& text = models.files.scheduler_config()) scheduler = sampling::parse_scheduler_config(*text);
  const Choice variant = choose_variant(request, models.files, scheduler);
  settings.variant = variant.value == "dev" ? Variant::dev : Variant::distilled;
  if (variant.reason == "nothing says otherwise") {
    settings.warnings.emplace_back(
        "neither the file's name nor a scheduler config tells whether the model is distilled: taken as "
        "distilled "
        "(say --variant dev or --variant distilled)");
  }
  settings.choices.push_back(variant);
  settings.conditions = plan_conditions(request, inputs.media,
                                        {.compression = models.compression(),
                                         .audio_rate = models.audio_rate(),
                                         .audio_length = settings.audio.length,
                                         .reference_downscale = inputs.reference_downscale},
                                        settings.warnings);
  settings.stages = {
      first_stage(request, models, settings, scheduler, request.two_stage ? inputs.upsampler : kSame)};
  if (request.two_stage) {
    if (inputs.upsampler.time > 1) check_half_rate(request, settings);
    check_second_stage(request, settings);
    settings.stages.push_back(second_stage(request, models, settings));
  }
  for (const StageSettings& stage : settings.stages)
    check_references(request, stage, inputs.reference_downscale);
}

}  // namespace

Settings settle(const Request& request, const ModelSet& models, const SettleInputs& inputs) {
  check_sizes(request, models.compression());
  Settings settings;
  settings.warnings = unusual_sizes(request);
  settings.warnings.insert(settings.warnings.end(), models.files.warnings().begin(),
                           models.files.warnings().end());

  const auto& audio = models.audio_decoder->config();
  settings.video = video_shape(request, models, kSame);
  settings.audio = {.channels = audio.latent_channels,
                    .length = sampling::audio_latent_length(request.frames, request.fps, models.audio_rate()),
                    .mel_bins = audio.latent_bins()};
  if (settings.audio.length < 1) {
    throw Error(ErrorKind::usage,
                fmt::format("{} frames at {} a second are too short for sound, which the model always makes",
                            request.frames, to_string(request.fps)),
                "ask for more frames or a lower rate");
  }
  settle_stages(request, models, inputs, settings);
  if (!request.negative_prompt.empty() && !sampling::needed_passes(settings.stages.front().guidance).negative)
    settings.warnings.emplace_back(
        "the negative prompt changes nothing without guidance (--guidance above 1)");
  const auto& transformer = models.transformer->config();
  const Choice dtype = choose_dtype(request.compute_dtype, models.table(ltx2::ComponentKind::transformer));
  settings.dtype = scalar_type(dtype);
  const std::int64_t tokens =
      request.streams == Streams::audio ? settings.audio.length : settings.stages.back().tokens();
  const Choice threads = choose_threads(request.threads, transformer, tokens);
  settings.threads = std::stoi(threads.value);
  settings.choices.insert(settings.choices.end(), {dtype, threads, cpu_choice()});
  return settings;
}

}  // namespace sluice::pipeline
