#include "pipeline/run_plan.h"

#include "pipeline/decode_phases.h"
#include "pipeline/denoise_memory.h"
#include "pipeline/encode_conditions.h"
#include "pipeline/sampler_steps.h"
#include "pipeline/text_memory.h"
#include "pipeline/text_phase.h"

#include <sluice/error.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <utility>

namespace sluice::pipeline {
namespace {

using ltx2::ComponentKind;

constexpr const char* kFrames = "frames being decoded";
constexpr const char* kScratch = "scratch of products and attention";

// What is left alone: the C library's and LibTorch's own small allocations, and what sampling misses.
Bytes reserve_of(const MemoryBudget& budget) {
  return std::clamp<Bytes>(budget.total / 50, MiB(16), MiB(256));
}

// The frames x264 looks ahead over and refers to, with what it keeps of each, and what libav sets up once:
// measured from 64 x 64 to 1280 x 704, 9 to 121 frames.
Bytes video_encoder_memory(const Request& request) {
  constexpr Bytes kLookedAhead = 30;  // frames
  const auto pixels = static_cast<Bytes>(request.width * request.height);
  return MiB(4) + std::min<Bytes>(static_cast<Bytes>(request.frames), kLookedAhead) * pixels * 7 / 2;
}

template <typename Range, typename Member>
Bytes sum(const Range& range, Member member) {
  return std::accumulate(range.begin(), range.end(), Bytes{0},
                         [&](Bytes total, const auto& item) { return total + item.*member; });
}

void add(PhasePlan& phase, std::string what, Bytes bytes) {
  phase.parts.push_back({std::move(what), bytes});
}

class Planner {
 public:
  Planner(const RunInputs& inputs, const MemoryBudget& budget, Bytes program)
      : inputs_(inputs), models_(inputs.models), plan_{.budget = budget, .program = program} {}

  RunPlan run() {
    if (!inputs_.prompt_tokens.empty()) {
      text();
      for (std::size_t stage = 0; stage < inputs_.settings.stages.size(); ++stage) {
        if (stage > 0) upsample();
        condition(stage);
        denoise(stage);
      }
    }
    if (inputs_.sound) sound();
    if (inputs_.video) video();
    return std::move(plan_);
  }

 private:
  Bytes room_beside(Bytes anonymous) const {
    const Bytes taken = plan_.program + anonymous + reserve_of(plan_.budget);
    return plan_.budget.total - std::min(taken, plan_.budget.total);
  }

  // Stages `component` in what is left beside everything that the phase has so far.
  void stage_in(PhasePlan& phase, const StagedComponent& component) {
    const StagingRequest request{.from = inputs_.request.stage_from,
                                 .backend = inputs_.request.read_backend,
                                 .resident_blocks = inputs_.request.resident_blocks};
    const Bytes beside = phase.in_turn ? phase.tensors() : phase.anonymous() + phase.page_cache();
    ComponentStaging staging = stage(component, request, room_beside(beside));
    if (staging.residence == Residence::mapped && read_before(component.order)) staging.bytes_once = 0;
    phase.staging.push_back(std::move(staging));
  }

  // Whether an earlier phase read these groups of a mapping, and left them in the page cache.
  bool read_before(std::span<const weights::ParameterGroup* const> groups) {
    const CachePolicy cache = cache_policy(inputs_.request);
    bool all = cache != CachePolicy::drop;
    for (const weights::ParameterGroup* group : groups) all = !read_.insert(group).second && all;
    return all;
  }

  void stage_in(PhasePlan& phase, ComponentKind kind,
                const std::vector<const weights::ParameterGroup*>& order, std::int64_t passes = 1) {
    stage_in(phase, {.table = models_.table(kind), .order = order, .passes = passes});
  }

  void text() {
    const TextShape shape{.tokens = inputs_.prompt_tokens,
                          .dtype = inputs_.settings.dtype,
                          .threads = inputs_.settings.threads};
    const TextMemory memory = text_memory(models_, inputs_.encoder, shape);
    PhasePlan phase{.name = "text", .in_turn = memory.in_turn()};
    add(phase, "activations", memory.most() - memory.scratch);
    add(phase, kScratch, memory.scratch);
    if (inputs_.encoder) {
      const auto order = inputs_.encoder->model->pass();
      stage_in(phase, {.table = inputs_.encoder->table, .order = order});
    }
    stage_in(phase, ComponentKind::connectors, models_.connectors->groups());
    const Bytes once = sum(phase.staging, &ComponentStaging::bytes_once);
    phase.read_beside = text_bytes_read(models_, inputs_.encoder, shape) - once;
    plan_.phases.push_back(std::move(phase));
  }

  // Frames, then sound; the second stage takes the sound's latents from the first.
  void condition(std::size_t stage) {
    const Settings& settings = inputs_.settings;
    const bool frames = settings.conditions.any_frames();
    const bool sound = settings.conditions.encodes_sound() && stage == 0;
    if (!frames && !sound) return;
    PhasePlan phase{.name = condition_phase(stage), .in_turn = true};
    Bytes most = 0;
    if (frames)
      most = frames_encode_memory(models_, inputs_.request, settings, settings.stages[stage],
                                  inputs_.settle.media);
    if (sound)
      most = std::max(most, sound_encode_memory(models_, inputs_.request, settings, inputs_.settle.media));
    add(phase, "what is given, its encoding", most);
    if (frames)
      stage_in(phase, ComponentKind::vae,
               {&models_.video_encoder->encoder_group(), &models_.video_decoder->statistics_group()});
    if (sound)
      stage_in(phase, ComponentKind::audio_vae,
               {&models_.audio_encoder->encoder_group(), &models_.audio_decoder->statistics_group()});
    plan_.phases.push_back(std::move(phase));
  }

  void upsample() {
    const sampling::VideoLatentShape &from = inputs_.settings.stages[0].video, &to = inputs_.settings.video;
    PhasePlan phase{.name = "upsample", .in_turn = true};
    const Bytes working = upsample_memory(inputs_.upsampler->model->config(),
                                          {.frames = from.frames, .height = from.height, .width = from.width},
                                          inputs_.settings.dtype);
    // The filters hold what they take and what they make; every clip of the run waits.
    const auto result = static_cast<Bytes>(to.tokens() * to.channels) * sizeof(float);
    const Bytes filters = 4 * result;
    add(phase, "activations", std::max(working, filters));
    add(phase, "clips", static_cast<Bytes>(inputs_.request.count) * result);
    const auto order = inputs_.upsampler->model->groups();
    stage_in(phase, {.table = inputs_.upsampler->table, .order = order, .passes = inputs_.request.count});
    phase.passes = inputs_.request.count;
    plan_.phases.push_back(std::move(phase));
  }

  DenoiseMemory memory_of(std::size_t index, std::int64_t clips) const {
    const Settings& settings = inputs_.settings;
    const StageSettings& stage = settings.stages[index];
    const auto needed = sampling::needed_passes(stage.guidance);
    const ltx2::Modalities modalities = models_.transformer->modalities();
    DenoiseShape shape{
        .text_tokens = kTextTokens,
        .contexts = needed.negative ? 2 : 1,
        .passes = static_cast<int>(clips) * needed.forward_passes(),
        .timesteps = distinct_timesteps(),
        .video_mask = inputs_.request.reference_attention < 1 && !inputs_.request.references.empty(),
        .dtype = settings.dtype,
        .threads = settings.threads};
    if (has_video(modalities)) shape.video_tokens = stage.tokens();
    if (has_audio(modalities)) shape.audio_tokens = settings.audio.length;
    for (const weights::LoraFile* adapter : adapters_of(index))
      shape.adapter_ranks.push_back(adapter->highest_rank);
    return denoise_memory(models_.transformer->config(), shape);
  }

  std::int64_t distinct_timesteps() const {
    std::set<double> strengths = {0};
    for (const PlannedFrames& frames : inputs_.settings.conditions.frames) strengths.insert(frames.strength);
    if (inputs_.settings.conditions.retaken_audio) strengths.insert(1);
    return static_cast<std::int64_t>(strengths.size());
  }

  std::span<const weights::LoraFile* const> adapters_of(std::size_t stage) const {
    if (stage >= inputs_.adapters.size()) return {};
    return inputs_.adapters[stage];
  }

  // Latents, noise and what is given of every clip, from step to step.
  Bytes latents_of(std::size_t index) const {
    const Settings& settings = inputs_.settings;
    const StageSettings& stage = settings.stages[index];
    const ltx2::Modalities modalities = models_.transformer->modalities();
    const auto& audio = settings.audio;
    const std::int64_t values = (has_video(modalities) ? stage.tokens() * stage.video.channels : 0) +
                                (has_audio(modalities) ? audio.length * audio.channels * audio.mel_bins : 0);
    const std::int64_t needed = sampling::needed_passes(stage.guidance).forward_passes();
    // Before and after a step, x0 of every pass, and what guidance makes of them; given tokens and their
    // mask.
    return static_cast<Bytes>(values) * sizeof(float) *
           static_cast<Bytes>(inputs_.request.count * 3 + needed + 3 + 2);
  }

  void denoise(std::size_t index) {
    const StageSettings& stage = inputs_.settings.stages[index];
    PhasePlan phase{.name = denoise_phase(index), .steps = stage.schedule.steps()};
    phase.passes = evaluations(index == 0 ? inputs_.request.sampler : Sampler::euler, phase.steps);
    const DenoiseMemory memory = memory_of(index, inputs_.request.count);
    add(phase, "contexts, positions, streams", memory.contexts + memory.streams);
    add(phase, "a block's activations", memory.block);
    add(phase, kScratch, memory.scratch);
    add(phase, "latents", latents_of(index));
    stage_with_adapters(phase, adapters_of(index));
    plan_.phases.push_back(std::move(phase));
  }

  // Adapters lie where the weights do that they stand beside: mapped, in memory, or read with each block.
  void stage_with_adapters(PhasePlan& phase, std::span<const weights::LoraFile* const> adapters) {
    const auto order = models_.transformer->groups();
    auto staged = [&](weights::LoraResidence residence) {
      PhasePlan plan = phase;
      if (!adapters.empty()) plan.adapters = {residence, weights::lora_bytes(adapters, order, residence)};
      stage_in(plan, ComponentKind::transformer, order, plan.passes);
      return plan;
    };
    const bool mapped =
        may_map(inputs_.request.read_backend) && inputs_.request.stage_from != StageFrom::disk;
    PhasePlan whole = staged(mapped ? weights::LoraResidence::mapped : weights::LoraResidence::memory);
    const Residence residence = whole.staging.front().residence;
    const bool streams = residence == Residence::window || residence == Residence::disk;
    phase = streams && !adapters.empty() ? staged(weights::LoraResidence::disk) : std::move(whole);
  }

  void sound() {
    PhasePlan phase{.name = "decode sound"};
    add(phase, "activations",
        sound_decode_memory(models_, inputs_.settings.audio.length, inputs_.settings.dtype));
    stage_in(phase, ComponentKind::audio_vae, models_.audio_decoder->groups());
    stage_in(phase, ComponentKind::vocoder, models_.vocoder->groups());
    plan_.phases.push_back(std::move(phase));
  }

  void video() {
    PhasePlan phase{.name = "decode video"};
    if (inputs_.video_file) add(phase, "video encoder", video_encoder_memory(inputs_.request));
    add(phase, "sound", sound_beside_frames());
    stage_in(phase, ComponentKind::vae, {&models_.video_decoder->decoder_group()});
    const Bytes room = room_beside(phase.anonymous() + phase.page_cache());
    const ltx2::DecodePlan decode = decode_within(room);
    add(phase, kFrames, static_cast<Bytes>(decode.memory));
    if (!decode.exact()) plan_.warnings.push_back(decode.warning);
    plan_.phases.push_back(std::move(phase));
  }

  // The clip's samples, which wait until the picture is there.
  Bytes sound_beside_frames() const {
    const auto& given = inputs_.settle.media.sound;
    if (!given && !inputs_.sound) return 0;
    const double rate =
        given ? given->sample_rate : static_cast<double>(models_.vocoder->config().output_sampling_rate);
    const double seconds = static_cast<double>(inputs_.request.frames) / inputs_.request.fps.value();
    return static_cast<Bytes>(rate * seconds) * 2 * sizeof(float);
  }

  // As small as it can be where nothing fits.
  ltx2::DecodePlan decode_within(Bytes room) const {
    const Settings& settings = inputs_.settings;
    try {
      return plan_frames(models_, settings.video, settings.dtype, inputs_.request.decode, room);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::does_not_fit) throw;
      return plan_frames(models_, settings.video, settings.dtype, inputs_.request.decode,
                         std::numeric_limits<std::int64_t>::max());
    }
  }

  const RunInputs& inputs_;
  const ModelSet& models_;
  RunPlan plan_;
  std::set<const weights::ParameterGroup*> read_;  // of mappings
};

Bytes held_at_once(const PhasePlan& phase, Bytes ComponentStaging::*what) {
  if (!phase.in_turn || phase.staging.empty()) return sum(phase.staging, what);
  return (*std::ranges::max_element(phase.staging, {}, what)).*what;
}

}  // namespace

std::string condition_phase(std::size_t stage) {
  return stage == 0 ? "condition" : "condition 2";
}

std::string denoise_phase(std::size_t stage) {
  return stage == 0 ? "denoise" : "denoise 2";
}

Bytes PhasePlan::tensors() const {
  return sum(parts, &MemoryPart::bytes);
}

Bytes PhasePlan::anonymous() const {
  return tensors() + held_at_once(*this, &ComponentStaging::anonymous) +
         (adapters ? adapters->bytes.anonymous : 0);
}

Bytes PhasePlan::page_cache() const {
  return held_at_once(*this, &ComponentStaging::page_cache) + (adapters ? adapters->bytes.page_cache : 0);
}

Bytes PhasePlan::bytes_per_pass() const {
  return sum(staging, &ComponentStaging::bytes_again) + (adapters ? adapters->bytes.again : 0);
}

Bytes PhasePlan::bytes_read() const {
  return sum(staging, &ComponentStaging::bytes_once) + (adapters ? adapters->bytes.once : 0) + read_beside +
         static_cast<Bytes>(passes - 1) * bytes_per_pass();
}

const PhasePlan* RunPlan::find(std::string_view name) const {
  auto phase = std::ranges::find(phases, name, &PhasePlan::name);
  return phase == phases.end() ? nullptr : &*phase;
}

const PhasePlan* RunPlan::too_large() const {
  const Bytes most = budget.total - std::min(reserve_of(budget), budget.total);
  auto phase = std::ranges::find_if(phases, [&](const PhasePlan& p) { return memory(p) > most; });
  return phase == phases.end() ? nullptr : &*phase;
}

Bytes RunPlan::reserve() const {
  return reserve_of(budget);
}

Bytes RunPlan::room_for_tensors(const PhasePlan& phase) const {
  const Bytes taken = memory(phase) - phase.tensors();
  return budget.total - std::min(taken, budget.total);
}

Bytes room_for_frames(const RunPlan& plan) {
  const PhasePlan& phase = *plan.find("decode video");
  const Bytes frames = std::ranges::find(phase.parts, kFrames, &MemoryPart::what)->bytes;
  const Bytes others = plan.memory(phase) - frames + reserve_of(plan.budget);
  const Bytes total = std::min(plan.budget.total, memory_budget(std::nullopt).total);
  // What the plan counted on is not taken back for a moment's shortage: fewer would be another picture, or
  // none.
  return std::max(frames, total - std::min(total, others));
}

Bytes RunPlan::peak() const {
  Bytes most = program;
  for (const PhasePlan& phase : phases) most = std::max(most, memory(phase));
  return most;
}

RunPlan plan_run(const RunInputs& inputs, const MemoryBudget& budget, Bytes program) {
  return Planner(inputs, budget, program).run();
}

}  // namespace sluice::pipeline
