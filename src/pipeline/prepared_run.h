#pragma once
// A request with everything about it decided and checked, before the first weight is read: models opened and
// accounted for, settings settled, injected values read, prompts tokenized.  `plan` stops here, `generate`
// goes on.

#include "pipeline/injection.h"
#include "pipeline/run_plan.h"
#include "pipeline/settings.h"
#include "pipeline/text_phase.h"

#include <sluice/sluice.h>

#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::pipeline {

struct PreparedRun {
  Request request;
  Outputs outputs;
  int threads = 0;
  ModelSet models;
  Settings settings;
  Injection injection;
  std::unique_ptr<TextEncoder> encoder;  // nullptr when no prompt needs it
  std::optional<TextJob> positive;       // empty when latents are given
  std::optional<TextJob> negative;       // empty when guidance does not need it
  RunPlan plan;                          // what will be done

  bool decodes() const {
    return !outputs.video.empty() || !outputs.wav.empty() || !outputs.frames_dir.empty();
  }
  bool decodes_sound() const { return outputs.sound && (!outputs.video.empty() || !outputs.wav.empty()); }
  bool decodes_video() const { return !outputs.video.empty() || !outputs.frames_dir.empty(); }
};

enum class Purpose { plan, generate };  // a plan looks at no output files and loads no tokenizer

PreparedRun prepare(const Request& request, const Outputs& outputs, Purpose purpose);

// What plan_run() takes.  `run` must outlive it.
RunInputs inputs_of(const PreparedRun& run);

nlohmann::json choices_json(const std::vector<Choice>& choices);

}  // namespace sluice::pipeline
