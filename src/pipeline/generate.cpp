// One generation from request to files: text, denoise, decode sound, decode video.
#include "base/allocator.h"
#include "base/log.h"
#include "base/process_usage.h"
#include "base/system_memory.h"
#include "base/temporary_file.h"
#include "kernels/memory_pool.h"
#include "kernels/scratch.h"
#include "media/sound_fit.h"
#include "media/wav_writer.h"
#include "pipeline/account.h"
#include "pipeline/allocation.h"
#include "pipeline/decode_phases.h"
#include "pipeline/frame_outputs.h"
#include "pipeline/json_text.h"
#include "pipeline/latents_file.h"
#include "pipeline/phase_meter.h"
#include "pipeline/prepared_run.h"
#include "pipeline/run_report.h"
#include "pipeline/trace.h"
#include "pipeline/work_dir.h"
#include "sampling/noise.h"

#include <sluice/sluice.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <variant>

namespace sluice {
namespace pipeline {
namespace {

// Under a limit the pages of files that a phase brought in are let go of at its end.
CachePolicy cache_policy(const Request& request) {
  if (request.memory_limit && request.cache == CachePolicy::automatic) return CachePolicy::drop;
  return request.cache;
}

class GenerateRun {
 public:
  GenerateRun(PreparedRun prepared, Progress* progress, const CancelToken* cancel)
      : run_(std::move(prepared)),
        work_(run_),
        backends_({.backend = run_.request.read_backend, .cache = cache_policy(run_.request)}, cancel,
                  [this] { stop_if_cancelled(); }),
        progress_(progress),
        cancel_(cancel) {
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
    make();
    const std::string report = json_text(run_report(run_, backends_, figures_));
    if (!run_.outputs.report.empty()) {
      work_.finishing(run_.outputs.report);
      write_text(run_.outputs.report, report + "\n");
    }
    work_.remove();
    return report;
  }

  void make() {
    const ClipLatents clip = run_.request.decode_latents.empty() ? denoised() : given();
    if (!run_.outputs.latents.empty()) {
      work_.finishing(run_.outputs.latents);
      write_latents(run_.outputs.latents, clip, {steps(), steps()});
    }
    std::optional<Waveform> sound;
    if (run_.decodes_sound()) sound = decoded_sound(clip.audio);
    if (run_.decodes_video()) decode_video(clip.video, sound);
    if (sound && !run_.outputs.wav.empty()) {
      work_.finishing(run_.outputs.wav);
      media::write_wav(run_.outputs.wav, {sound->sample_rate, sound->left, sound->right});
    }
  }

  // Latents instead of a prompt: clean, or of a step.
  ClipLatents given() {
    auto latents = read_latents(run_.request.decode_latents, run_.settings);
    if (auto* clip = std::get_if<ClipLatents>(&latents)) return *clip;
    return unpacked(std::get<Latents>(latents));
  }

  ClipLatents denoised() {
    const bool traces = !run_.outputs.trace.empty() && !work_.made(run_.outputs.trace);
    if (!traces) {
      if (auto clip = work_.clip()) {
        resumed("after all steps");
        return *clip;
      }
    }
    std::optional<StepLatents> last = traces ? std::nullopt : work_.last_step();
    Contexts contexts;
    if (traces || !last || last->done < steps()) contexts = kept_or_made_contexts();
    Trace trace(traces ? run_.outputs.trace : std::filesystem::path());
    trace.begin(contexts.positive, run_.settings);
    if (traces) last = replay(trace);
    if (last) resumed(fmt::format("after {} of {} steps", last->done, steps()));
    const Latents latents = denoise_on(contexts, last ? std::move(*last) : StepLatents{0, noise()}, trace);
    const ClipLatents clip = unpacked(latents);
    work_.keep(clip);
    work_.finishing(run_.outputs.trace);
    trace.finish(clip);
    work_.forget_steps();
    return clip;
  }

  Contexts kept_or_made_contexts() {
    if (auto kept = work_.contexts()) {
      resumed("after the text phase");
      return *kept;
    }
    Contexts contexts;
    metered("text", [&] {
      std::vector<TextJob> jobs = {*run_.positive};
      if (run_.negative) jobs.push_back(*run_.negative);
      std::vector<ltx2::TextContext> made =
          encode_text(run_.models, run_.encoder.get(), backends_, jobs, run_.settings.dtype,
                      [&](std::int64_t done, std::int64_t total) { tell("text", done, total, "layers"); });
      contexts.positive = std::move(made.front());
      if (run_.negative) contexts.negative = std::move(made.back());
    });
    work_.keep(contexts);
    return contexts;
  }

  // The steps that were kept, from the first one on; the last of them.
  std::optional<StepLatents> replay(Trace& trace) {
    std::optional<StepLatents> last;
    for (std::int64_t done = 1; done <= steps(); ++done) {
      auto latents = work_.step(done);
      if (!latents) break;
      trace.step(done - 1, *latents);
      last = StepLatents{done, std::move(*latents)};
    }
    return last;
  }

  Latents noise() const {
    const Injection& injection = run_.injection;
    Latents latents{.video = injection.video_noise, .audio = injection.audio_noise};
    if (latents.video.defined() && latents.audio.defined()) return latents;
    sampling::NoiseSource source(run_.request.seed);
    const auto drawn = sampling::draw_initial_noise(source, 1, run_.settings.video, run_.settings.audio);
    if (!latents.video.defined()) latents.video = sampling::pack_video(drawn.video);
    if (!latents.audio.defined()) latents.audio = sampling::pack_audio(drawn.audio);
    return latents;
  }

  Latents denoise_on(const Contexts& contexts, StepLatents from, Trace& trace) {
    if (from.done == steps()) return from.latents;
    Latents latents;
    metered("denoise", [&] { latents = denoise(contexts, std::move(from), trace); });
    return latents;
  }

  Latents denoise(const Contexts& contexts, StepLatents from, Trace& trace) {
    const ltx2::TransformerConfig& config = run_.models.transformer->config();
    const auto& video = run_.settings.video;
    const ltx2::VideoGrid grid{.frames = video.frames, .height = video.height, .width = video.width};
    const auto positions =
        ltx2::make_positions(config, ltx2::video_coordinates(config, grid, run_.request.fps.value()),
                             ltx2::audio_coordinates(config, run_.settings.audio.length));
    tell("denoise", from.done, steps(), "steps");
    const auto order = run_.models.transformer->groups();
    auto source = backends_.source(run_.models.table(ltx2::ComponentKind::transformer), order);
    DenoiseEvents events;
    events.after_block = [&](std::int64_t, std::int64_t) { stop_if_cancelled(); };
    ProcessUsage before = process_usage();
    events.after_step = [&](std::int64_t step, const Latents& latents) {
      const ProcessUsage now = process_usage();
      figures_.steps.push_back({(now - std::exchange(before, now)).seconds, anonymous_memory()});
      backends_.check();
      work_.keep(StepLatents{step + 1, latents});
      trace.step(step, latents);
      tell("denoise", step + 1, steps(), "steps");
    };
    return pipeline::denoise(*run_.models.transformer, *source, positions, contexts,
                             {.sigmas = run_.settings.schedule.sigmas,
                              .first_step = from.done,
                              .guidance = run_.settings.guidance,
                              .stg_blocks = run_.settings.stg_blocks,
                              .compute_dtype = run_.settings.dtype},
                             std::move(from.latents), events);
  }

  ClipLatents unpacked(const Latents& latents) {
    return with_memory_errors("denoise",
                              [&] { return unpack_latents(run_.models, backends_, run_.settings, latents); });
  }

  Waveform decoded_sound(const at::Tensor& latents) {
    if (auto kept = work_.sound()) {
      resumed("after the sound");
      return *kept;
    }
    Waveform sound;
    metered("decode sound", [&] {
      tell("decode sound", 0, 1, "clips");
      sound = decode_sound(run_.models, backends_, latents, run_.settings.dtype);
      backends_.check();
      tell("decode sound", 1, 1, "clips");
    });
    work_.keep(sound);
    return sound;
  }

  void decode_video(const at::Tensor& latents, const std::optional<Waveform>& sound) {
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
      figures_.sound_fit = media::fit_sound(static_cast<std::int64_t>(sound->left.size()), sound->sample_rate,
                                            run_.request.frames, run_.request.fps);
    }
    FrameOutputs frames(run_.request, run_.outputs, sound, std::move(tags));
    metered("decode video", [&] {
      const ltx2::DecodePlan plan = plan_frames(run_.models, run_.settings.video, run_.settings.dtype,
                                                run_.request.decode, room_for_frames(run_.plan));
      decode_frames(run_.models, backends_, latents, plan, folder_for_frames(),
                    [&](std::int64_t index, const at::Tensor& frame) {
                      frames.add(index, frame);
                      tell("decode video", index + 1, run_.request.frames, "frames");
                    });
    });
    backends_.check();
    work_.finishing(run_.outputs.frames_dir);
    work_.finishing(run_.outputs.video);
    frames.finish();
  }

  template <typename Work>
  void metered(const char* phase, Work work) {
    struct ScratchGuard {  // a failed phase must not keep it either
      ~ScratchGuard() { kernels::release_scratch(); }
    };
    begin_phase(phase);
    PhaseMeter meter(phase, backends_);
    {
      ScratchGuard guard;
      with_memory_errors(phase, work);
    }
    backends_.let_go();
    figures_.phases.push_back(meter.finish());
    give_back_freed_memory();
  }

  // Weights as planned, and no more memory for tensors than the limit leaves beside them.
  void begin_phase(const char* name) {
    const PhasePlan* phase = run_.plan.find(name);
    if (!phase) return;
    for (const ComponentStaging& staging : phase->staging) backends_.stage(staging);
    kernels::begin_pool_phase(phase->tensors());
    // What is there already (injected values, contexts, latents) is counted with the program.
    const Bytes held = kernels::pool_figures().live;
    if (run_.request.memory_limit) kernels::limit_memory_pool(held + run_.plan.room_for_tensors(*phase));
  }

  // Where frames of tiles wait: beside what they become.
  std::filesystem::path folder_for_frames() const {
    const auto& target = run_.outputs.video.empty() ? run_.outputs.frames_dir : run_.outputs.video;
    return std::filesystem::absolute(target).parent_path();
  }

  void resumed(const std::string& from) {
    log_info(fmt::format("resumed {}", from));
    figures_.resumed = from;
  }

  void tell(std::string_view phase, std::int64_t done, std::int64_t total, std::string_view unit) {
    if (progress_) progress_->at(phase, done, total, unit);
    stop_if_cancelled();
  }

  void stop_if_cancelled() const {
    if (cancel_ && cancel_->cancelled())
      throw Error(ErrorKind::interrupted, "interrupted", "run the same command again to start over");
  }

  std::int64_t steps() const { return run_.settings.schedule.steps(); }

  PreparedRun run_;
  WorkDir work_;
  Backends backends_;
  Progress* progress_;
  const CancelToken* cancel_;
  RunFigures figures_;
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
