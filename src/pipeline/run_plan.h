#pragma once
// A whole run as it will be: for each phase where weights are, what memory it takes and what it reads.  From
// headers, shapes and the budget alone; `plan` prints it, `generate` carries it out, and the report sets it
// beside what was measured.

#include "models/ltx2/upsampler/upsampler.h"
#include "pipeline/memory_budget.h"
#include "pipeline/model_set.h"
#include "pipeline/settings.h"
#include "pipeline/staging.h"
#include "weights/lora/lora_source.h"

#include <sluice/sluice.h>

#include <optional>
#include <string>
#include <vector>

namespace sluice::pipeline {

struct RunInputs {
  const ModelSet& models;
  const TextEncoder* encoder = nullptr;                              // nullptr: no prompt needs it
  const ltx2::UpsamplerFile* upsampler = nullptr;                    // nullptr: one stage
  std::vector<std::vector<const weights::LoraFile*>> adapters = {};  // by stage
  const Request& request;
  const Settings& settings;
  SettleInputs settle;                      // what `settings` were made with
  std::vector<std::int64_t> prompt_tokens;  // of each prompt; empty: latents are given, nothing is denoised
  bool sound = true;
  bool video = true;       // frames are decoded
  bool video_file = true;  // and encoded
};

struct MemoryPart {  // a buffer of a phase
  std::string what;
  Bytes bytes = 0;
};

struct AdapterStaging {
  weights::LoraResidence residence = weights::LoraResidence::mapped;
  weights::LoraBytes bytes;
};

struct PhasePlan {
  std::string name;
  std::vector<MemoryPart> parts;  // anonymous, beside what the program holds
  std::vector<ComponentStaging> staging;
  std::optional<AdapterStaging> adapters;  // beside the weights of the phase's one component
  std::int64_t steps = 0;                  // of a denoising
  std::int64_t passes = 1;                 // over the weights
  Bytes read_beside = 0;                   // rows of tables, and projections that are read more than once
  std::optional<double> seconds;           // predicted, where the machine was measured

  bool in_turn = false;  // components are there one after the other, not all at once

  Bytes tensors() const;  // all parts
  Bytes anonymous() const;
  Bytes page_cache() const;
  Bytes bytes_read() const;      // in all passes
  Bytes bytes_per_pass() const;  // of a pass after the first
};

struct RunPlan {
  MemoryBudget budget;
  Bytes program = 0;  // what the process holds before the first phase
  std::vector<PhasePlan> phases;
  std::vector<std::string> warnings;

  Bytes memory(const PhasePlan& phase) const { return program + phase.anonymous() + phase.page_cache(); }
  const PhasePlan* find(std::string_view name) const;
  Bytes reserve() const;  // left alone of the limit, for what cannot be counted
  // For tensors of a phase, in what the limit leaves beside program and weights.
  Bytes room_for_tensors(const PhasePlan& phase) const;
  // With what is left alone for the C library's own.
  const PhasePlan* too_large() const;  // the first phase that does not fit; nullptr: all do
  Bytes peak() const;
};

// Names of the phases of a stage (0, 1).
std::string condition_phase(std::size_t stage);  // "condition", "condition 2"
std::string denoise_phase(std::size_t stage);    // "denoise", "denoise 2"

// Never refuses: a phase that does not fit is planned as small as it can be.
// For the frames of the phase "decode video": what the plan counted on, or less where there is less by now.
Bytes room_for_frames(const RunPlan& plan);

RunPlan plan_run(const RunInputs& inputs, const MemoryBudget& budget, Bytes program);

}  // namespace sluice::pipeline
