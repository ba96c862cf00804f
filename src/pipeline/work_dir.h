#pragma once
// What a run keeps so that another can go on from it: contexts after the text phase, latents after each step
// (the last two of a stage, all of them while a trace is written), what the second of two stages begins with,
// the clean latents, the decoded sound.  Each is a file of its own in the work folder, complete and checked,
// and each is of use without the others.  Latents are those of all clips of the run.
//
// - Kept at Outputs::work_dir, "<first output>.sluice-work" if that is empty; made when there is something to
//   keep, removed when all outputs are made.  Decoding given latents keeps nothing.
// - Outputs::resume goes on from there.  Without a work_dir, and with no folder beside the first output, any
//   other work folder beside it serves whose identity is the same.
// - Without it a run starts over; earlier work stays until there is something new to keep.
// - Keeping never fails a run: a full disk or refused memory is a warning.
// - All of it outlives a kill; a power cut may cost the last two seconds.
// One thread.

#include "pipeline/decode_phases.h"
#include "pipeline/kept_tensors.h"
#include "pipeline/prepared_run.h"
#include "pipeline/work_folder.h"

#include <sluice/error.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sluice::pipeline {

struct StepLatents {
  std::size_t stage = 0;
  std::int64_t done = 0;  // steps of it
  std::vector<Latents> clips;
};

class WorkDir {
 public:
  // Error(usage): the folder is something else; or, with Outputs::resume, there is nothing to go on from,
  // another run has it, the identity differs (named), an output exists that the earlier run did not make, or
  // a trace is asked for whose first steps were not kept.
  explicit WorkDir(const PreparedRun& run);

  // What there is to go on from; nothing without Outputs::resume.  What is damaged is told in a warning and
  // taken for missing.
  std::optional<Contexts> contexts() const;
  std::optional<StepLatents> last_step() const;
  std::optional<std::vector<Latents>> step(std::size_t stage, std::int64_t done) const;
  std::optional<std::vector<Latents>> refined_from() const;  // what the second stage begins with
  std::optional<std::vector<ClipLatents>> clips() const;
  std::optional<Waveform> sound(std::size_t clip) const;
  // Whether the earlier run made this output: it is there, complete.
  bool made(const std::filesystem::path& output) const;

  void keep(const Contexts& contexts);
  void keep(const StepLatents& step);
  void keep_refined_from(const std::vector<Latents>& clips);
  void keep(const std::vector<ClipLatents>& clips);
  void keep(const Waveform& sound, std::size_t clip);
  // Contexts and steps are not needed any more, but for the last step.
  void forget_steps();
  // Before an output gets its name.
  void finishing(const std::filesystem::path& output);
  // Everything is made.
  void remove();

  // After a failure: says in a warning what is kept, and gives the error with the way to go on.
  Error with_way_on(const Error& error);

 private:
  std::size_t clip_count() const { return static_cast<std::size_t>(run_.request.count); }
  void resume_from(WorkFolder folder);
  void look_at(WorkFolder folder);
  std::optional<KeptTensors> read(const std::string& name) const;
  void attempt(const std::function<void()>& work);
  void write(const std::string& name, const KeptTensors& kept, const std::string& what);
  Flush flush_now();

  const PreparedRun& run_;
  nlohmann::json identity_;
  std::string owner_;                 // the identity's checksum, in every file
  std::optional<WorkFolder> folder_;  // empty: nothing is kept
  bool resumes_ = false;
  bool begun_ = false;  // the folder is this run's
  bool warned_ = false;
  std::chrono::steady_clock::time_point flushed_{};
  std::string kept_;  // "the latents after 5 of 8 steps"; empty: nothing
};

}  // namespace sluice::pipeline
