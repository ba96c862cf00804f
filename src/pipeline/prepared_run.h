#pragma once
// A request with everything about it decided and checked, before the first weight is read: models opened and
// accounted for, settings settled, injected values read, prompts tokenized.  `plan` stops here, `generate`
// goes on.

#include "models/ltx2/upsampler/upsampler.h"
#include "pipeline/given_media.h"
#include "pipeline/injection.h"
#include "pipeline/run_plan.h"
#include "pipeline/settings.h"
#include "pipeline/text_phase.h"
#include "weights/lora/lora_file.h"

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
  GivenMedia media;
  ModelSet models;
  std::unique_ptr<ltx2::UpsamplerFile> upsampler;            // nullptr with one stage
  std::vector<std::unique_ptr<weights::LoraFile>> adapters;  // Request::adapters, then the second stage's
  std::int64_t reference_downscale = 1;                      // of the adapter that takes references
  UpsamplerScale upsampler_scale;
  Settings settings;
  Injection injection;
  std::unique_ptr<TextEncoder> encoder;  // nullptr when no prompt needs it
  std::optional<TextJob> positive;       // empty when latents are given
  std::optional<TextJob> negative;       // empty when guidance does not need it
  RunPlan plan;                          // what will be done

  bool decodes() const {
    return !outputs.video.empty() || !outputs.wav.empty() || !outputs.frames_dir.empty();
  }
  // The result has sound: the model's, or the one that is given.
  bool has_sound() const {
    return outputs.sound && request.streams != Streams::video &&
           (!outputs.video.empty() || !outputs.wav.empty());
  }
  bool decodes_sound() const { return has_sound() && request.audio.empty(); }
  bool decodes_video() const { return !outputs.video.empty() || !outputs.frames_dir.empty(); }
  // That a stage (0, 1) works with.
  std::vector<const weights::LoraFile*> adapters_of(std::size_t stage) const;
};

enum class Purpose { plan, generate };  // a plan looks at no output files and loads no tokenizer

PreparedRun prepare(const Request& request, const Outputs& outputs, Purpose purpose);

// What plan_run() takes.  `run` must outlive it.
RunInputs inputs_of(const PreparedRun& run);

nlohmann::json choices_json(const std::vector<Choice>& choices);

}  // namespace sluice::pipeline
