// One generation from request to files: text, denoise, decode sound, decode video.
#include "base/allocator.h"
#include "base/log.h"
#include "base/temporary_file.h"
#include "kernels/memory_pool.h"
#include "media/sound_fit.h"
#include "media/sound_reader.h"
#include "media/wav_writer.h"
#include "pipeline/account.h"
#include "pipeline/allocation.h"
#include "pipeline/clip_outputs.h"
#include "pipeline/decode_phases.h"
#include "pipeline/denoise_run.h"
#include "pipeline/frame_outputs.h"
#include "pipeline/json_text.h"
#include "pipeline/latents_file.h"
#include "pipeline/phase_runner.h"
#include "pipeline/prepared_run.h"
#include "pipeline/run_report.h"
#include "pipeline/work_dir.h"

#include <sluice/sluice.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

namespace sluice {
namespace pipeline {
namespace {

class GenerateRun {
 public:
  GenerateRun(PreparedRun prepared, Progress* progress, const CancelToken* cancel)
      : run_(std::move(prepared)),
        work_(run_),
        backends_({.backend = run_.request.read_backend, .cache = cache_policy(run_.request)}, cancel,
                  [this] { runner_.stop_if_cancelled(); }),
        runner_(run_, backends_, figures_, progress, cancel) {
    // The work folder has looked: whatever stands under these names, the earlier run made it.
    if (run_.outputs.resume) run_.outputs.overwrite = true;
  }

  ~GenerateRun() {  // the pool is the process's, the limit was this run's
    kernels::limit_memory_pool(0);
    kernels::begin_pool_phase(0);
  }

  std::string operator()() {
    for (const Choice& choice : run_.settings.choices)
      log_info(fmt::format("{}: {} ({})", choice.what, choice.value, choice.reason));
    for (const std::string& warning : run_.settings.warnings) log_warning(warning);
    try {
      return with_memory_errors("", [&] { return everything(); });
    } catch (const Error& error) {
      throw work_.with_way_on(error);
    }
  }

 private:
  std::string everything() {
    const std::vector<ClipLatents> clips =
        run_.request.decode_latents.empty() ? denoised_clips(runner_, work_) : std::vector{given()};
    for (std::size_t clip = 0; clip < clips.size(); ++clip) finish(clip, clips[clip]);
    const std::string report = json_text(run_report(run_, backends_, figures_));
    if (!run_.outputs.report.empty()) {
      work_.finishing(run_.outputs.report);
      write_text(run_.outputs.report, report + "\n");
    }
    work_.remove();
    return report;
  }

  // Latents instead of a prompt: clean, or of a step.
  ClipLatents given() {
    auto latents = read_latents(run_.request.decode_latents, run_.settings);
    if (auto* clip = std::get_if<ClipLatents>(&latents)) return *clip;
    return with_memory_errors("", [&] {
      return unpack_latents(run_.models, backends_, run_.settings, std::get<Latents>(latents));
    });
  }

  void finish(std::size_t index, const ClipLatents& clip) {
    const Outputs outputs = clip_outputs(run_.outputs, run_.request, index);
    // Another run may have made them since this one began.
    for (const auto& path : {outputs.latents, outputs.video, outputs.wav})
      if (!path.empty() && !run_.outputs.overwrite) check_target(path, Existing::refuse);
    if (!outputs.latents.empty()) {
      work_.finishing(outputs.latents);
      const std::int64_t steps = run_.settings.stages.back().schedule.steps();
      write_latents(outputs.latents, clip, {steps, steps});
    }
    const std::optional<Waveform> sound = sound_of(index, clip);
    if (run_.decodes_video()) decode_video(index, outputs, clip, sound);
    if (sound && !outputs.wav.empty()) {
      work_.finishing(outputs.wav);
      media::write_wav(outputs.wav, sound->wave());
    }
  }

  std::optional<Waveform> sound_of(std::size_t index, const ClipLatents& clip) {
    if (!run_.has_sound()) return std::nullopt;
    if (!run_.request.audio.empty()) return given_sound();
    if (!clip.audio.defined()) {
      throw Error(ErrorKind::bad_input,
                  fmt::format("{}: there are no latents of a sound", run_.request.decode_latents.string()),
                  "add --no-audio");
    }
    return decoded_sound(index, clip.audio);
  }

  // As long as the clip at most; what is missing is silence (media::fit_sound).
  Waveform given_sound() const {
    const double seconds = static_cast<double>(run_.request.frames) / run_.request.fps.value();
    media::Sound sound = media::read_sound(run_.request.audio, seconds);
    warn_if_clipped(sound);
    return {.sample_rate = sound.sample_rate,
            .left = std::move(sound.left),
            .right = std::move(sound.right),
            .pcm = media::Pcm::exact};
  }

  void warn_if_clipped(const media::Sound& sound) const {
    std::int64_t beyond = 0;
    for (const auto* channel : {&sound.left, &sound.right})
      beyond += std::ranges::count_if(*channel, [](float sample) { return std::abs(sample) > 1; });
    if (beyond > 0) {
      log_warning(fmt::format("{}: {} samples beyond full scale are clipped in what is written",
                              run_.request.audio.string(), beyond));
    }
  }

  Waveform decoded_sound(std::size_t index, const at::Tensor& latents) {
    if (auto kept = work_.sound(index)) {
      runner_.resumed("after the sound");
      return *kept;
    }
    Waveform sound;
    runner_.run("decode sound", [&] {
      runner_.tell("decode sound", 0, 1, "clips");
      sound = decode_sound(run_.models, backends_, latents, run_.settings.dtype);
      backends_.check();
      runner_.tell("decode sound", 1, 1, "clips");
    });
    work_.keep(sound, index);
    return sound;
  }

  std::map<std::string, std::string> tags_of(std::size_t index) const {
    if (!run_.outputs.metadata) return {};
    // Given latents do not tell which request made them.
    if (!run_.request.decode_latents.empty())
      return {{"comment", fmt::format("latents decoded with sluice {}", version())}};
    nlohmann::json request = settled_request(run_);
    request["seed"] = clip_seed(run_.request, index);
    return video_tags(request, fingerprints(run_.models, run_.encoder.get()));
  }

  void decode_video(std::size_t index, const Outputs& outputs, const ClipLatents& clip,
                    const std::optional<Waveform>& sound) {
    if (sound) {
      auto samples = static_cast<std::int64_t>(sound->left.size());
      // Of a given sound only what the clip has room for was read.
      if (const auto& given = run_.media.sound) samples = std::max(samples, given->samples);
      figures_.sound_fit =
          media::fit_sound(samples, sound->sample_rate, run_.request.frames, run_.request.fps);
    }
    FrameOutputs frames(run_.request, outputs, sound, tags_of(index));
    give_back_freed_memory();  // what encoding the sound took is no part of the picture's
    runner_.run("decode video", [&] {
      const ltx2::DecodePlan plan = plan_frames(run_.models, run_.settings.video, run_.settings.dtype,
                                                run_.request.decode, room_for_frames(run_.plan));
      decode_frames(run_.models, backends_, clip.video, plan, folder_for_frames(outputs),
                    [&](std::int64_t frame, const at::Tensor& pixels) {
                      frames.add(frame, pixels);
                      runner_.tell("decode video", frame + 1, run_.request.frames, "frames");
                    });
    });
    backends_.check();
    work_.finishing(outputs.frames_dir);
    work_.finishing(outputs.video);
    frames.finish();
  }

  // Where frames of tiles wait: beside what they become.
  static std::filesystem::path folder_for_frames(const Outputs& outputs) {
    const auto& target = outputs.video.empty() ? outputs.frames_dir : outputs.video;
    return std::filesystem::absolute(target).parent_path();
  }

  PreparedRun run_;
  WorkDir work_;
  Backends backends_;
  RunFigures figures_;
  PhaseRunner runner_;
};

}  // namespace
}  // namespace pipeline

std::string generate(const Request& request, const Outputs& outputs, Progress* progress,
                     const CancelToken* cancel) {
  return pipeline::with_memory_errors("", [&] {
    pipeline::GenerateRun run(pipeline::prepare(request, outputs, pipeline::Purpose::generate), progress,
                              cancel);
    return run();
  });
}

}  // namespace sluice
