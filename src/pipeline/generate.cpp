// One generation from request to files: text, denoise, decode sound, decode video.
#include "base/allocator.h"
#include "base/file.h"
#include "base/log.h"
#include "base/system_memory.h"
#include "base/temporary_file.h"
#include "media/mp4_writer.h"
#include "media/pixels.h"
#include "media/png_writer.h"
#include "media/sound_fit.h"
#include "media/wav_writer.h"
#include "pipeline/account.h"
#include "pipeline/allocation.h"
#include "pipeline/decode_phases.h"
#include "pipeline/json_text.h"
#include "pipeline/latents_file.h"
#include "pipeline/phase_meter.h"
#include "pipeline/prepared_run.h"
#include "pipeline/trace.h"
#include "sampling/noise.h"

#include <sluice/sluice.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <array>
#include <optional>

namespace sluice {
namespace pipeline {
namespace {

using nlohmann::json;

void write_text(const std::filesystem::path& path, const std::string& text) {
  TemporaryFile file(path);
  write_all(File::open_for_writing(file.path()), std::as_bytes(std::span(text)), path);
  file.commit();
}

// Where frames go: an mp4, a folder of PNGs, or both.
class FrameOutputs {
 public:
  FrameOutputs(const PreparedRun& run, const std::optional<Waveform>& sound,
               std::map<std::string, std::string> tags)
      : height_(static_cast<int>(run.request.height)),
        width_(static_cast<int>(run.request.width)),
        rgb_(static_cast<std::size_t>(3) * height_ * width_) {
    if (!run.outputs.frames_dir.empty()) {
      folder_.emplace(run.outputs.frames_dir, run.outputs.overwrite ? Existing::overwrite : Existing::refuse);
    }
    if (run.outputs.video.empty()) return;
    media::Mp4Options options{.width = width_,
                              .height = height_,
                              .rate = run.request.fps,
                              .frames = run.request.frames,
                              .metadata = std::move(tags)};
    if (sound) options.sound = media::StereoWave{sound->sample_rate, sound->left, sound->right};
    mp4_.emplace(run.outputs.video, options);
  }

  void add(std::int64_t index, const at::Tensor& frame) {  // f32 [3, height, width]
    const at::Tensor planes = frame.contiguous();
    const auto size = static_cast<std::size_t>(height_) * static_cast<std::size_t>(width_);
    const float* data = planes.const_data_ptr<float>();
    media::PlanarFrame planar{
        .height = height_,
        .width = width_,
        .planes = {std::span(data, size), std::span(data + size, size), std::span(data + 2 * size, size)}};
    media::to_rgb8(planar, index, rgb_);
    const media::RgbFrame rgb{.height = height_, .width = width_, .pixels = rgb_};
    if (mp4_) mp4_->add_frame(rgb);
    if (folder_) folder_->add_frame(rgb);
  }

  void finish() {
    if (folder_) folder_->finish();
    if (mp4_) mp4_->finish();
  }

 private:
  int height_;
  int width_;
  std::vector<std::uint8_t> rgb_;
  std::optional<media::Mp4Writer> mp4_;
  std::optional<media::PngFolderWriter> folder_;
};

// Beside the video that was not made; never a file that is there already.
std::filesystem::path name_for_kept_latents(const std::filesystem::path& video) {
  const std::string stem = (video.parent_path() / video.stem()).native();
  std::filesystem::path path = stem + ".latents.safetensors";
  for (int i = 2; std::filesystem::exists(path); ++i)
    path = fmt::format("{}.latents-{}.safetensors", stem, i);
  return path;
}

class GenerateRun {
 public:
  GenerateRun(PreparedRun prepared, Progress* progress, const CancelToken* cancel)
      : run_(std::move(prepared)),
        backends_({.backend = run_.request.read_backend, .cache = run_.request.cache}, cancel,
                  [this] {
                    if (!keeping_) stop_if_cancelled();
                  }),
        progress_(progress),
        cancel_(cancel) {}

  std::string operator()() {
    for (const Choice& choice : run_.settings.choices)
      log_info(fmt::format("{}: {} ({})", choice.what, choice.value, choice.reason));
    for (const std::string& warning : run_.settings.warnings) log_warning(warning);
    try {
      make();
    } catch (const Error& error) {
      const bool kept = keep_latents(error);
      if (!kept || error.kind() != ErrorKind::interrupted) throw;
      throw Error(error.kind(), error.what(), "--decode-latents goes on from the latents that are kept");
    }
    const std::string report = json_text(report_json());
    if (!run_.outputs.report.empty()) write_text(run_.outputs.report, report + "\n");
    return report;
  }

 private:
  void make() {
    const ClipLatents clip = run_.request.decode_latents.empty()
                                 ? denoised()
                                 : read_latents(run_.request.decode_latents, run_.settings);
    if (!run_.outputs.latents.empty())
      write_latents(run_.outputs.latents, clip,
                    {run_.settings.schedule.steps(), run_.settings.schedule.steps()});
    std::optional<Waveform> sound;
    if (run_.decodes_sound()) {
      metered("decode sound", [&] {
        tell("decode sound", 0, 1, "clips");
        sound = decode_sound(run_.models, backends_, clip.audio, run_.settings.dtype);
        backends_.check();
        tell("decode sound", 1, 1, "clips");
      });
    }
    if (run_.decodes_video()) decode_video(clip, sound);
    if (sound && !run_.outputs.wav.empty()) {
      media::write_wav(run_.outputs.wav, {sound->sample_rate, sound->left, sound->right});
    }
  }

  ClipLatents denoised() {
    Contexts contexts;
    metered("text", [&] {
      contexts.positive = text(*run_.positive);
      if (run_.negative) contexts.negative = text(*run_.negative);
    });
    Trace trace(run_.outputs.trace);
    trace.begin(contexts.positive, run_.settings);
    Latents latents;
    metered("denoise", [&] { latents = denoise(contexts, trace); });
    ClipLatents clip = unpack_latents(run_.models, backends_, run_.settings, latents);
    trace.finish(clip);
    return clip;
  }

  ltx2::TextContext text(const TextJob& job) {
    return encode_text(run_.models, run_.encoder.get(), backends_, job, run_.settings.dtype,
                       [&](std::int64_t done, std::int64_t total) { tell("text", done, total, "layers"); });
  }

  Latents start() const {
    const Injection& injection = run_.injection;
    Latents latents{.video = injection.video_noise, .audio = injection.audio_noise};
    if (latents.video.defined() && latents.audio.defined()) return latents;
    sampling::NoiseSource source(run_.request.seed);
    const auto noise = sampling::draw_initial_noise(source, 1, run_.settings.video, run_.settings.audio);
    if (!latents.video.defined()) latents.video = sampling::pack_video(noise.video);
    if (!latents.audio.defined()) latents.audio = sampling::pack_audio(noise.audio);
    return latents;
  }

  Latents denoise(const Contexts& contexts, Trace& trace) {
    const ltx2::TransformerConfig& config = run_.models.transformer->config();
    const auto& video = run_.settings.video;
    const ltx2::VideoGrid grid{.frames = video.frames, .height = video.height, .width = video.width};
    const auto positions =
        ltx2::make_positions(config, ltx2::video_coordinates(config, grid, run_.request.fps.value()),
                             ltx2::audio_coordinates(config, run_.settings.audio.length));
    const std::int64_t steps = run_.settings.schedule.steps();
    tell("denoise", 0, steps, "steps");
    auto source = backends_.source(run_.models.table(ltx2::ComponentKind::transformer));
    DenoiseEvents events;
    events.after_block = [&](std::int64_t, std::int64_t) { stop_if_cancelled(); };
    events.after_step = [&](std::int64_t step, const Latents& latents) {
      backends_.check();
      last_step_ = latents;
      steps_done_ = step + 1;
      trace.step(step, latents);
      tell("denoise", step + 1, steps, "steps");
    };
    return pipeline::denoise(*run_.models.transformer, *source, positions, contexts,
                             {.sigmas = run_.settings.schedule.sigmas,
                              .guidance = run_.settings.guidance,
                              .stg_blocks = run_.settings.stg_blocks,
                              .compute_dtype = run_.settings.dtype},
                             start(), events);
  }

  void decode_video(const ClipLatents& clip, const std::optional<Waveform>& sound) {
    std::map<std::string, std::string> tags;
    if (run_.outputs.metadata) {
      // Given latents do not tell which request made them.
      tags = run_.request.decode_latents.empty()
                 ? video_tags(settled_request(run_.request, run_.settings, run_.threads),
                              fingerprints(run_.models, run_.encoder.get()))
                 : std::map<std::string, std::string>{
                       {"comment", fmt::format("latents decoded with sluice {}", version())}};
    }
    if (sound) {
      sound_fit_ = media::fit_sound(static_cast<std::int64_t>(sound->left.size()), sound->sample_rate,
                                    run_.request.frames, run_.request.fps);
    }
    FrameOutputs frames(run_, sound, std::move(tags));
    metered("decode video", [&] {
      decode_frames(run_.models, backends_, clip.video, run_.settings.dtype,
                    [&](std::int64_t index, const at::Tensor& frame) {
                      frames.add(index, frame);
                      tell("decode video", index + 1, run_.request.frames, "frames");
                    });
    });
    backends_.check();
    frames.finish();
  }

  template <typename Work>
  void metered(const char* phase, Work work) {
    PhaseMeter meter(phase, backends_);
    work();
    backends_.let_go();
    phases_.push_back(meter.finish());
    give_back_freed_memory();
  }

  void tell(std::string_view phase, std::int64_t done, std::int64_t total, std::string_view unit) {
    if (progress_) progress_->at(phase, done, total, unit);
    stop_if_cancelled();
  }

  void stop_if_cancelled() const {
    if (cancel_ && cancel_->cancelled()) {
      throw Error(ErrorKind::interrupted, "interrupted", "run the same command again to start over");
    }
  }

  // What was denoised outlives a later failure.  Whether there is now a file that can be decoded.
  bool keep_latents(const Error& error) {
    const bool finished = steps_done_ == run_.settings.schedule.steps();
    if (steps_done_ == 0 || run_.outputs.video.empty() ||
        (!finished && error.kind() != ErrorKind::non_finite))
      return false;
    if (finished && !run_.outputs.latents.empty()) return std::filesystem::exists(run_.outputs.latents);
    const std::filesystem::path path = name_for_kept_latents(run_.outputs.video);
    keeping_ = true;
    backends_.ignore_cancel();
    try {
      write_latents(path, unpack_latents(run_.models, backends_, run_.settings, last_step_),
                    {steps_done_, run_.settings.schedule.steps()});
    } catch (const Error& second) {
      log_warning(fmt::format("the latents could not be kept: {}", second.what()));
      return false;
    }
    log_warning(finished ? fmt::format("the latents are kept in {0}: decode them with --decode-latents {0}",
                                       path.string())
                         : fmt::format("the latents after {} of {} steps are kept in {}", steps_done_,
                                       run_.settings.schedule.steps(), path.string()));
    return finished;
  }

  json report_json() const {
    json report = {{"request", settled_request(run_.request, run_.settings, run_.threads)},
                   {"versions", versions()},
                   {"files", fingerprints(run_.models, run_.encoder.get())},
                   {"choices", choices_json(run_.settings.choices)},
                   {"warnings", run_.settings.warnings},
                   {"phases", json::array()}};
    report["choices"].push_back(
        {{"what", "read-backend"}, {"value", backends_.chosen()}, {"reason", backends_.reason()}});
    if (const CachePolicy cache = run_.request.cache; cache != CachePolicy::automatic)
      report["choices"].push_back({{"what", "cache"}, {"value", to_string(cache)}, {"reason", "asked for"}});
    for (const std::string& warning : backends_.warnings()) report["warnings"].push_back(warning);
    const auto planned = needs_of(run_, backends_.in_place());
    for (const PhaseFigures& phase : phases_) {
      json row = {{"name", phase.name},
                  {"seconds", phase.seconds},
                  {"bytes_read", phase.bytes_read},
                  {"peak_anonymous", phase.peak_anonymous},
                  {"page_cache", phase.page_cache}};
      auto plan = std::find_if(planned.begin(), planned.end(),
                               [&](const PhaseNeeds& p) { return p.name == phase.name; });
      if (plan != planned.end()) {
        row["planned"] = {{"bytes_read", plan->weights},
                          {"peak_anonymous", anonymous_before_ + plan->anonymous}};
      }
      report["phases"].push_back(row);
    }
    if (run_.positive && run_.positive->tokens) {
      report["prompt"] = {{"tokens", run_.positive->tokens->tokens},
                          {"tokens_kept", run_.positive->tokens->ids.size()}};
    }
    if (sound_fit_) {
      report["sound"] = {
          {"samples", sound_fit_->samples}, {"silence_added", sound_fit_->silence}, {"cut", sound_fit_->cut}};
    }
    return report;
  }

  PreparedRun run_;
  Backends backends_;
  Progress* progress_;
  const CancelToken* cancel_;
  Bytes anonymous_before_ = anonymous_memory();
  std::vector<PhaseFigures> phases_;
  std::optional<media::SoundFit> sound_fit_;
  Latents last_step_;
  bool keeping_ = false;  // the latents, after a failure: no longer to be interrupted
  std::int64_t steps_done_ = 0;
};

}  // namespace
}  // namespace pipeline

std::string generate(const Request& request, const Outputs& outputs, Progress* progress,
                     const CancelToken* cancel) {
  return pipeline::with_memory_errors([&] {
    pipeline::GenerateRun run(pipeline::prepare(request, outputs, pipeline::Purpose::generate), progress,
                              cancel);
    return run();
  });
}

}  // namespace sluice
