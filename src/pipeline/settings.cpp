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

Settings settle(const Request& request, const ModelSet& models) {
  const auto compression = models.compression();
  check_sizes(request, compression);
  Settings settings;
  settings.warnings = unusual_sizes(request);
  settings.warnings.insert(settings.warnings.end(), models.files.warnings().begin(),
                           models.files.warnings().end());

  const auto& transformer = models.transformer->config();
  const auto& audio = models.audio_decoder->config();
  settings.video = {.channels = transformer.video.in_channels,
                    .frames = sampling::latent_frames(request.frames, compression),
                    .height = request.height / compression.pixels,
                    .width = request.width / compression.pixels};
  settings.audio = {.channels = audio.latent_channels,
                    .length = sampling::audio_latent_length(request.frames, request.fps, models.audio_rate()),
                    .mel_bins = audio.latent_bins()};
  if (settings.audio.length < 1) {
    throw Error(ErrorKind::usage,
                fmt::format("{} frames at {} a second are too short for sound, which the model always makes",
                            request.frames, to_string(request.fps)),
                "ask for more frames or a lower rate");
  }

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
  settings.schedule = choose_schedule(request, settings.variant, scheduler, settings.video.tokens());

  const bool dev = settings.variant == Variant::dev && request.sigmas.empty();
  settings.guidance = {.video = scales(request.guidance, dev ? kDevVideo : sampling::GuidanceScales{}),
                       .audio = scales(audio_request(request), dev ? kDevAudio : sampling::GuidanceScales{})};
  settings.stg_blocks = choose_stg_blocks(request, settings.guidance, transformer.num_layers);
  const Choice dtype = choose_dtype(request.compute_dtype, models.table(ltx2::ComponentKind::transformer));
  settings.dtype = scalar_type(dtype);
  const Choice threads = choose_threads(request.threads, transformer, settings.video.tokens());
  settings.threads = std::stoi(threads.value);
  settings.choices = {variant, dtype, threads, cpu_choice()};
  return settings;
}

}  // namespace sluice::pipeline
