#include "pipeline/denoise_run.h"

#include "base/process_usage.h"
#include "base/system_memory.h"
#include "pipeline/allocation.h"
#include "pipeline/clip_outputs.h"
#include "pipeline/encode_conditions.h"
#include "pipeline/stage_conditions.h"
#include "pipeline/stage_noise.h"
#include "pipeline/upsample.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

namespace sluice::pipeline {
namespace {

class DenoiseRun {
 public:
  DenoiseRun(PhaseRunner& runner, WorkDir& work) : runner_(runner), run_(runner.prepared()), work_(work) {}

  std::vector<ClipLatents> operator()() {
    const bool traces = !run_.outputs.trace.empty() && !work_.made(run_.outputs.trace);
    if (!traces) {
      if (auto clips = work_.clips()) {
        runner_.resumed("after all steps");
        return *clips;
      }
    }
    std::optional<StepLatents> last = traces ? std::nullopt : work_.last_step();
    if (traces || !last || !ends(*last)) contexts_ = kept_or_made_contexts();
    Trace trace(traces ? run_.outputs.trace : std::filesystem::path());
    trace.begin(contexts_.positive, run_.settings, run_.models.transformer->modalities());
    if (traces) last = replay(trace);
    const std::vector<Latents> latents = all_stages(std::move(last), trace);
    std::vector<ClipLatents> clips;
    for (const Latents& of : latents) clips.push_back(unpacked(of));
    work_.keep(clips);
    work_.finishing(run_.outputs.trace);
    trace.finish(clips.front());
    work_.forget_steps();
    return clips;
  }

 private:
  const Settings& settings() const { return run_.settings; }
  std::size_t stages() const { return settings().stages.size(); }
  std::size_t clip_count() const { return static_cast<std::size_t>(run_.request.count); }
  std::int64_t steps(std::size_t stage) const { return settings().stages[stage].schedule.steps(); }
  bool ends(const StepLatents& last) const {
    return last.stage + 1 == stages() && last.done == steps(last.stage);
  }

  Contexts kept_or_made_contexts() {
    if (auto kept = work_.contexts()) {
      runner_.resumed("after the text phase");
      return *kept;
    }
    Contexts contexts;
    runner_.run("text", [&] {
      std::vector<TextJob> jobs = {*run_.positive};
      if (run_.negative) jobs.push_back(*run_.negative);
      std::vector<ltx2::TextContext> made = encode_text(
          run_.models, run_.encoder.get(), runner_.backends(), jobs, settings().dtype,
          [&](std::int64_t done, std::int64_t total) { runner_.tell("text", done, total, "layers"); });
      contexts.positive = std::move(made.front());
      if (run_.negative) contexts.negative = std::move(made.back());
    });
    work_.keep(contexts);
    return contexts;
  }

  // The steps that were kept, from the first one on; the last of them.
  std::optional<StepLatents> replay(Trace& trace) {
    std::optional<StepLatents> last;
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      for (std::int64_t done = 1; done <= steps(stage); ++done) {
        auto clips = work_.step(stage, done);
        if (!clips) return last;
        trace.step(stage, done - 1, clips->front());
        last = StepLatents{stage, done, std::move(*clips)};
      }
    }
    return last;
  }

  std::vector<Latents> all_stages(std::optional<StepLatents> last, Trace& trace) {
    if (last) {
      runner_.resumed(fmt::format("after {} of {} steps{}", last->done, steps(last->stage),
                                  stages() > 1 ? fmt::format(" of stage {}", last->stage + 1) : ""));
    }
    std::vector<Latents> made;
    const std::size_t first = last ? last->stage : 0;
    for (std::size_t stage = first; stage < stages(); ++stage) {
      const bool goes_on = last && last->stage == stage;
      std::vector<Latents> refined;
      if (stage > 0 && !goes_on) refined = upsampled(made);
      made = run_stage(stage, refined, goes_on ? std::exchange(last, std::nullopt) : std::nullopt, trace);
    }
    return made;
  }

  std::vector<Latents> upsampled(const std::vector<Latents>& small) {
    if (auto kept = work_.refined_from()) return *kept;
    std::vector<Latents> large;
    runner_.run("upsample", [&] {
      for (const Latents& clip : small) {
        runner_.tell("upsample", static_cast<std::int64_t>(large.size()),
                     static_cast<std::int64_t>(small.size()), "clips");
        large.push_back(upsample(run_, runner_.backends(), clip));
      }
      runner_.backends().check();
      work_.keep_refined_from(large);
      runner_.tell("upsample", run_.request.count, run_.request.count, "clips");
    });
    return large;
  }

  GivenLatents given(std::size_t stage) {
    const bool frames = settings().conditions.any_frames();
    const bool sound = settings().conditions.encodes_sound() && !sound_.defined();
    GivenLatents given;
    // The sound is the first stage's, also where a run goes on behind it.
    if (sound && stage > 0) runner_.run(condition_phase(0), [&] { hear(); });
    if (frames || (sound && stage == 0)) {
      runner_.run(condition_phase(stage), [&] {
        if (frames) given.frames = look(stage);
        if (sound && stage == 0) hear();
      });
    }
    given.audio = sound_;
    return given;
  }

  std::vector<at::Tensor> look(std::size_t stage) {
    auto latents = encode_frames(run_.models, runner_.backends(), run_.request, settings(),
                                 settings().stages[stage], [&](std::int64_t done, std::int64_t total) {
                                   runner_.tell(condition_phase(stage), done, total, "frames");
                                 });
    runner_.backends().check();
    return latents;
  }

  void hear() {
    runner_.stop_if_cancelled();
    sound_ = encode_sound(run_.models, runner_.backends(), run_.request, settings());
    runner_.backends().check();
  }

  LayoutInputs layout_of(std::size_t stage) const {
    return {.transformer = run_.models.transformer->config(),
            .plan = settings().conditions,
            .stage = settings().stages[stage],
            .audio = settings().audio,
            .fps = settings().stages[stage].fps,
            .reference_attention = run_.request.reference_attention};
  }

  // Where a clip begins: injected noise serves the first stage.
  Latents noise(std::size_t stage, std::size_t clip) const {
    const Injection& injection = run_.injection;
    Latents noise;
    if (stage == 0) noise = {.video = injection.video_noise, .audio = injection.audio_noise};
    const ltx2::Modalities modalities = run_.models.transformer->modalities();
    const bool video = has_video(modalities) && !noise.video.defined();
    const bool audio = has_audio(modalities) && !noise.audio.defined();
    if (!video && !audio) return noise;
    const Latents drawn = stage_noise(settings(), modalities, clip_seed(run_.request, clip), stage);
    if (video) noise.video = drawn.video;
    if (audio) noise.audio = drawn.audio;
    return noise;
  }

  std::vector<Latents> run_stage(std::size_t stage, const std::vector<Latents>& refined,
                                 std::optional<StepLatents> from, Trace& trace) {
    if (from && from->done == steps(stage)) return std::move(from->clips);
    const GivenLatents given_latents = given(stage);
    const LayoutInputs layout = layout_of(stage);
    const StageConditions conditions = lay_out(layout, given_latents);
    if (!from) {
      from = StepLatents{.stage = stage};
      const double level =
          stage == 0 ? 1.0 : static_cast<double>(settings().stages[stage].schedule.sigmas.front());
      for (std::size_t clip = 0; clip < clip_count(); ++clip) {
        const Latents clean = refined.empty() ? Latents{} : refined[clip];
        from->clips.push_back(stage_start(conditions, noise(stage, clip), clean, level));
      }
    }
    std::vector<Latents> made;
    runner_.run(denoise_phase(stage),
                [&] { made = denoise_stage(layout, conditions, std::move(*from), trace); });
    return made;
  }

  DenoiseSetup setup_of(std::size_t stage, const StageConditions& conditions, std::int64_t first_step) const {
    const StageSettings& own = settings().stages[stage];
    DenoiseSetup setup{.sigmas = own.schedule.sigmas,
                       .first_step = first_step,
                       // The second stage is always refined by plain steps.
                       .sampler = stage == 0 ? run_.request.sampler : Sampler::euler,
                       .guidance = own.guidance,
                       .stg_blocks = own.stg_blocks,
                       .compute_dtype = settings().dtype,
                       .video = conditions.video,
                       .audio = conditions.audio,
                       .frozen_audio = conditions.frozen_audio,
                       .video_self_mask = conditions.video_self_mask};
    // As the official pipeline has it: only what is guided by itself is perturbed.
    if (conditions.frozen_audio) setup.perturbed_streams = ltx2::Modalities::video;
    for (const weights::LoraFile* adapter : run_.adapters_of(stage))
      setup.adapter_ranks.push_back(adapter->highest_rank);
    return setup;
  }

  std::vector<Latents> denoise_stage(const LayoutInputs& layout, const StageConditions& conditions,
                                     StepLatents from, Trace& trace) {
    const std::size_t stage = from.stage;
    const std::string phase = denoise_phase(stage);
    const ltx2::Transformer& transformer = *run_.models.transformer;
    const auto positions = stage_positions(layout, conditions, transformer.modalities());
    runner_.tell(phase, from.done, steps(stage), "steps");
    const auto order = transformer.groups();
    const auto adapters = run_.adapters_of(stage);
    const PhasePlan& plan = *run_.plan.find(phase);
    auto source =
        runner_.backends().source(run_.models.table(ltx2::ComponentKind::transformer), order, adapters,
                                  plan.adapters ? plan.adapters->residence : weights::LoraResidence::mapped);

    DenoiseSetup setup = setup_of(stage, conditions, from.done);
    std::vector<std::array<StepNoise, 2>> noise;  // by clip, by use
    for (std::size_t clip = 0; clip < clip_count(); ++clip) {
      const std::uint64_t seed = clip_seed(run_.request, clip);
      const Latents& shapes = from.clips[clip];
      noise.push_back({StepNoise(seed, NoiseUse::step, shapes), StepNoise(seed, NoiseUse::middle, shapes)});
      if (setup.sampler == Sampler::euler) continue;
      for (StepNoise& use : noise.back()) use.skip(from.done);
    }
    setup.noise = [&](std::size_t clip, NoiseUse use) {
      return noise[clip][static_cast<std::size_t>(use)].draw();
    };

    DenoiseEvents events;
    events.after_block = [&](std::int64_t, std::int64_t) { runner_.stop_if_cancelled(); };
    ProcessUsage before = process_usage();
    events.after_step = [&](std::int64_t step, const std::vector<Latents>& clips) {
      const ProcessUsage now = process_usage();
      runner_.figures().steps.push_back({(now - std::exchange(before, now)).seconds, anonymous_memory()});
      runner_.backends().check();
      work_.keep(StepLatents{stage, step + 1, clips});
      trace.step(stage, step, clips.front());
      runner_.tell(phase, step + 1, steps(stage), "steps");
    };
    return denoise(transformer, *source, positions, contexts_, setup, std::move(from.clips), events);
  }

  ClipLatents unpacked(const Latents& latents) {
    return with_memory_errors(
        "denoise", [&] { return unpack_latents(run_.models, runner_.backends(), settings(), latents); });
  }

  PhaseRunner& runner_;
  const PreparedRun& run_;
  WorkDir& work_;
  Contexts contexts_;
  at::Tensor sound_;  // latents of the sound that is given
};

}  // namespace

std::vector<ClipLatents> denoised_clips(PhaseRunner& runner, WorkDir& work) {
  return DenoiseRun(runner, work)();
}

}  // namespace sluice::pipeline
