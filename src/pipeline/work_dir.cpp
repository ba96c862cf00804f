#include "pipeline/work_dir.h"

#include "base/log.h"
#include "base/output_name.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "bytes/format/checksum.h"
#include "media/png_writer.h"
#include "pipeline/allocation.h"
#include "pipeline/clip_outputs.h"
#include "pipeline/latents_file.h"
#include "pipeline/work_identity.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

namespace sluice::pipeline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kContexts = "contexts.safetensors";
constexpr const char* kClip = "latents.safetensors";
constexpr const char* kRefinedFrom = "upsampled.safetensors";
constexpr std::string_view kStepAfter = "_steps.safetensors";
constexpr std::array<std::string_view, 2> kStepBefore = {"latents_after_", "refined_after_"};  // by stage

std::string sound_name(std::size_t clip) {
  return clip == 0 ? "sound.safetensors" : fmt::format("sound_{}.safetensors", clip);
}

struct KeptStep {
  std::size_t stage = 0;
  std::int64_t done = 0;
  auto operator<=>(const KeptStep&) const = default;
};

std::string step_name(KeptStep step) {
  return fmt::format("{}{:04}{}", kStepBefore[step.stage], step.done, kStepAfter);
}

std::optional<KeptStep> step_of(std::string_view name) {
  for (std::size_t stage = 0; stage < kStepBefore.size(); ++stage) {
    const std::string_view before = kStepBefore[stage];
    if (!name.starts_with(before) || !name.ends_with(kStepAfter)) continue;
    KeptStep step{.stage = stage};
    std::from_chars(name.data() + before.size(), name.data() + name.size(), step.done);
    return step;
  }
  return std::nullopt;
}

// Steps whose latents lie in the folder, the last one first.
std::vector<KeptStep> steps_in(const fs::path& folder) {
  std::vector<KeptStep> steps;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    if (const auto step = step_of(entry->path().filename().native())) steps.push_back(*step);
  }
  std::ranges::sort(steps, std::greater());
  return steps;
}

std::string checksum_of(const json& identity) {
  const std::string text = identity.dump();
  bytes::Checksum checksum;
  checksum.add(std::as_bytes(std::span(text)));
  return checksum.text();
}

WorkMarker marker_of(const json& identity, const PreparedRun& run) {
  WorkMarker marker{.identity = identity};
  for (const fs::path& path : output_files(run.outputs, run.request))
    marker.outputs.push_back(recorded_name(path));
  for (const fs::path& folder : frame_folders(run.outputs, run.request))
    marker.frame_folders.push_back(recorded_name(folder));
  return marker;
}

bool lists(const std::vector<std::string>& names, const fs::path& output) {
  return std::ranges::find(names, recorded_name(output)) != names.end();
}

// Where `--resume` looks: where it is told to, or beside the first output.
std::vector<fs::path> places(const Outputs& outputs) {
  if (!outputs.work_dir.empty()) return {outputs.work_dir};
  std::vector<fs::path> found = {default_work_folder(outputs)};
  std::error_code ignored;
  const fs::path folder = full_name(found.front()).parent_path();
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    const fs::path& path = entry->path();
    if (path.native().ends_with(kWorkEnding) && path.filename() != found.front().filename() &&
        entry->is_directory(ignored))
      found.push_back(path);
  }
  std::sort(found.begin() + 1, found.end());
  return found;
}

bool is_of(const WorkFolder& folder, const json& identity) {
  return folder.marker() && folder.marker()->identity == identity;
}

std::string list_differences(const WorkFolder& folder, const json& identity) {
  return list_first(identity_differences(folder.marker()->identity, identity), 8);
}

Error nothing_to_resume(const WorkFolder& folder, const json& identity) {
  const std::string name = folder.path().string();
  if (folder.damaged()) {
    return Error(ErrorKind::corrupt_file, fmt::format("{}: its sluice-work.json is damaged", name),
                 "run without --resume to start over");
  }
  if (!folder.marker()) {
    return Error(ErrorKind::usage, fmt::format("there is nothing to resume: no work is kept in {}", name),
                 "run without --resume, or name the folder of the earlier run with --work-dir");
  }
  return Error(ErrorKind::usage,
               fmt::format("{}: the work that is kept there is of another request: {}", name,
                           list_differences(folder, identity)),
               "give the earlier request again, or run without --resume to start over");
}

// The first place with work of this request.
WorkFolder find_work(const Outputs& outputs, const json& identity) {
  const std::vector<fs::path> candidates = places(outputs);
  WorkFolder first(candidates.front());
  if (is_of(first, identity)) return first;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    try {
      WorkFolder other(candidates[i]);
      if (is_of(other, identity)) return other;
    } catch (const Error&) {  // no work folder, by its name alone
    }
  }
  throw nothing_to_resume(first, identity);
}

// What an earlier run made may be replaced; anything else that has come meanwhile is somebody else's.
void require_own(const PreparedRun& run, const WorkMarker& marker) {
  if (run.outputs.overwrite) return;
  for (const fs::path& path : output_files(run.outputs, run.request))
    if (!lists(marker.finishing, path)) check_target(path, Existing::refuse);
  for (const fs::path& folder : frame_folders(run.outputs, run.request))
    if (!lists(marker.finishing, folder)) media::check_frame_folder(folder, Existing::refuse);
}

// A trace begins with the first step.
void require_every_step(const Outputs& outputs, const Settings& settings, const WorkFolder& folder) {
  if (outputs.trace.empty()) return;
  if (lists(folder.marker()->finishing, outputs.trace) && fs::exists(outputs.trace)) return;
  const std::vector<KeptStep> steps = steps_in(folder.path());
  const auto count = static_cast<std::int64_t>(steps.size());
  if (count == 0) return;
  std::int64_t done = steps.front().done;
  for (std::size_t stage = 0; stage < steps.front().stage; ++stage)
    done += settings.stages[stage].schedule.steps();
  if (count == done) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("{}: a trace needs the latents of all {} steps that are done, and {} of them are kept",
                  folder.path().string(), done, count),
      "leave out --trace, or run without --resume to start over");
}

void add_context(weights::TensorMap& tensors, const std::string& which, const ltx2::TextContext& context) {
  tensors[which + ".video"] = context.video_text;
  tensors[which + ".audio"] = context.audio_text;
  if (context.mask.defined()) tensors[which + ".mask"] = context.mask;
}

ltx2::TextContext take_context(const weights::TensorMap& tensors, const std::string& which) {
  auto take = [&](const char* name) {
    auto found = tensors.find(which + name);
    return found == tensors.end() ? at::Tensor() : found->second;
  };
  return {.video_text = take(".video"), .audio_text = take(".audio"), .mask = take(".mask")};
}

at::Tensor samples(const std::vector<float>& channel) {
  return at::from_blob(const_cast<float*>(channel.data()), {static_cast<std::int64_t>(channel.size())},
                       at::TensorOptions().dtype(at::kFloat));
}

std::vector<float> channel(const at::Tensor& samples) {
  const float* data = samples.const_data_ptr<float>();
  return {data, data + samples.numel()};
}

}  // namespace

WorkDir::WorkDir(const PreparedRun& run) : run_(run) {
  if (!run.request.decode_latents.empty()) return;
  identity_ = work_identity(run);
  owner_ = checksum_of(identity_);
  if (run.outputs.resume) {
    resume_from(find_work(run.outputs, identity_));
  } else if (!run.outputs.work_dir.empty()) {
    look_at(WorkFolder(run.outputs.work_dir));
  } else {
    try {
      look_at(WorkFolder(default_work_folder(run.outputs)));
    } catch (const Error& error) {  // nobody asked for that name: no reason not to run
      log_warning(fmt::format("nothing to resume from is kept: {}", error.what()));
    }
  }
}

void WorkDir::resume_from(WorkFolder folder) {
  if (!folder.take()) {
    throw Error(ErrorKind::usage, fmt::format("{}: another run works with it", folder.path().string()),
                "wait for its end");
  }
  require_own(run_, *folder.marker());
  require_every_step(run_.outputs, run_.settings, folder);
  log_info(fmt::format("resuming from the work that is kept in {}", folder.path().string()));
  folder_.emplace(std::move(folder));
  resumes_ = begun_ = true;
  kept_ = "the work of the earlier run";
  attempt([&] { folder_->go_on(marker_of(identity_, run_)); });
}

// Of a run that starts over.
void WorkDir::look_at(WorkFolder folder) {
  const std::string name = folder.path().string();
  if (!folder.take()) {
    log_warning(fmt::format("{}: another run works with it, so this one keeps nothing to resume from", name));
    return;
  }
  if (is_of(folder, identity_)) {
    kept_ = "the results of an earlier run";
    log_warning(
        fmt::format("{}: starting over, --resume would go on from the work that is kept there", name));
  } else if (folder.marker()) {
    log_warning(fmt::format("{}: the work of another request there is going to be replaced ({})", name,
                            list_differences(folder, identity_)));
  }
  folder_.emplace(std::move(folder));
}

std::optional<KeptTensors> WorkDir::read(const std::string& name) const {
  if (!resumes_) return std::nullopt;
  try {
    return read_kept(folder_->path() / name, owner_);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::does_not_fit) throw;
    log_warning(fmt::format("{}: what was kept before it serves", error.what()));
    return std::nullopt;
  }
}

std::optional<Contexts> WorkDir::contexts() const {
  const auto kept = read(kContexts);
  if (!kept) return std::nullopt;
  Contexts contexts{.positive = take_context(kept->tensors, "positive")};
  if (run_.negative) contexts.negative = take_context(kept->tensors, "negative");
  return contexts;
}

std::optional<std::vector<Latents>> WorkDir::step(std::size_t stage, std::int64_t done) const {
  const auto kept = read(step_name({stage, done}));
  if (!kept) return std::nullopt;
  return packed_clips_in(*kept, clip_count());
}

std::optional<StepLatents> WorkDir::last_step() const {
  if (!resumes_) return std::nullopt;
  for (const KeptStep& kept : steps_in(folder_->path())) {
    if (auto clips = step(kept.stage, kept.done))
      return StepLatents{kept.stage, kept.done, std::move(*clips)};
  }
  return std::nullopt;
}

std::optional<std::vector<Latents>> WorkDir::refined_from() const {
  const auto kept = read(kRefinedFrom);
  if (!kept) return std::nullopt;
  return packed_clips_in(*kept, clip_count());
}

std::optional<std::vector<ClipLatents>> WorkDir::clips() const {
  const auto kept = read(kClip);
  if (!kept) return std::nullopt;
  return clips_in(*kept, clip_count());
}

std::optional<Waveform> WorkDir::sound(std::size_t clip) const {
  auto kept = read(sound_name(clip));
  if (!kept) return std::nullopt;
  return Waveform{.sample_rate = std::stoi(kept->metadata.at("sample_rate")),
                  .left = channel(kept->tensors["left"]),
                  .right = channel(kept->tensors["right"])};
}

bool WorkDir::made(const fs::path& output) const {
  return resumes_ && lists(folder_->marker()->finishing, output) && fs::exists(output);
}

void WorkDir::attempt(const std::function<void()>& work) {
  if (!folder_) return;
  try {
    with_memory_errors("", [&] {
      if (!begun_) folder_->begin(marker_of(identity_, run_));
      begun_ = true;
      work();
    });
  } catch (const Error& error) {
    if (!std::exchange(warned_, true))
      log_warning(fmt::format("the run goes on, but not all of it can be resumed: {}", error.what()));
  }
}

// A flush takes longer than a step of a small model.
Flush WorkDir::flush_now() {
  const auto now = std::chrono::steady_clock::now();
  if (now - flushed_ < std::chrono::seconds(2)) return Flush::no;
  flushed_ = now;
  return Flush::yes;
}

void WorkDir::write(const std::string& name, const KeptTensors& kept, const std::string& what) {
  attempt([&] {
    write_kept(folder_->path() / name, kept, owner_, flush_now());
    kept_ = what;
  });
}

void WorkDir::keep(const Contexts& contexts) {
  KeptTensors kept;
  add_context(kept.tensors, "positive", contexts.positive);
  if (contexts.negative) add_context(kept.tensors, "negative", *contexts.negative);
  write(kContexts, kept, "the text contexts");
}

void WorkDir::keep(const StepLatents& step) {
  const std::int64_t all = run_.settings.stages[step.stage].schedule.steps();
  const bool two = run_.settings.stages.size() > 1;
  write(step_name({step.stage, step.done}), latents_content(step.clips, {step.done, all}),
        fmt::format("the latents after {} of {} steps{}", step.done, all,
                    two ? fmt::format(" of stage {}", step.stage + 1) : ""));
  if (!run_.outputs.trace.empty()) return;
  attempt([&] {
    for (const KeptStep& kept : steps_in(folder_->path())) {
      if (kept.stage == step.stage && kept.done + 1 < step.done)
        fs::remove(folder_->path() / step_name(kept));
    }
  });
}

void WorkDir::keep_refined_from(const std::vector<Latents>& clips) {
  const std::int64_t all = run_.settings.stages.front().schedule.steps();
  write(kRefinedFrom, latents_content(clips, {all, all}), "the upsampled latents of the first stage");
}

void WorkDir::keep(const std::vector<ClipLatents>& clips) {
  const std::int64_t all = run_.settings.stages.back().schedule.steps();
  write(kClip, latents_content(clips, {all, all}), "the latents");
}

void WorkDir::keep(const Waveform& sound, std::size_t clip) {
  write(sound_name(clip),
        {.tensors = {{"left", samples(sound.left)}, {"right", samples(sound.right)}},
         .metadata = {{"sample_rate", std::to_string(sound.sample_rate)}}},
        "the latents and the sound");
}

void WorkDir::forget_steps() {
  attempt([&] {
    if (!fs::exists(folder_->path() / kClip)) return;  // could not be kept: what led to it is all there is
    fs::remove(folder_->path() / kContexts);
    fs::remove(folder_->path() / kRefinedFrom);
    const KeptStep last{run_.settings.stages.size() - 1, run_.settings.stages.back().schedule.steps()};
    for (const KeptStep& kept : steps_in(folder_->path())) {
      if (kept < last) fs::remove(folder_->path() / step_name(kept));
    }
  });
}

void WorkDir::finishing(const fs::path& output) {
  if (!output.empty()) attempt([&] { folder_->finishing(output); });
}

void WorkDir::remove() {
  if (folder_ && begun_) folder_->remove();
}

Error WorkDir::with_way_on(const Error& error) {
  if (!folder_ || kept_.empty()) {
    remove();
    return error;
  }
  const std::string place = folder_->path().string();
  log_warning(
      fmt::format("{0} are kept in {1}: --resume goes on from there, with another output --resume "
                  "--work-dir {1}",
                  kept_, place));
  if (error.kind() == ErrorKind::interrupted)
    return Error(error.kind(), error.what(), "run the same command again with --resume");
  // Values that are not finite would come again.
  if (error.kind() == ErrorKind::non_finite) return error;
  return Error(error.kind(), error.what(),
               error.hint().empty() ? "run the same command again with --resume"
                                    : fmt::format("{}, then run again with --resume", error.hint()));
}

}  // namespace sluice::pipeline
