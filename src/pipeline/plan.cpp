// What a request would need, from headers alone; how long it would take, from a short measurement.
#include "pipeline/account.h"
#include "pipeline/json_text.h"
#include "pipeline/plan_json.h"
#include "pipeline/predict.h"
#include "pipeline/prepared_run.h"
#include "pipeline/remedy.h"

#include <sluice/memory.h>
#include <sluice/sluice.h>

#include <string>

namespace sluice {
namespace pipeline {
namespace {

using nlohmann::json;

json component_rows(const PreparedRun& run) {
  json rows = json::array();
  auto row = [](std::string_view name, const weights::Accounting& accounting) {
    return json{{"name", name},
                {"tensors", accounting.bound},
                {"bytes", accounting.bound_bytes},
                {"ignored", accounting.ignored}};
  };
  if (run.encoder) rows.push_back(row("text_encoder", run.encoder->accounting));
  for (const auto& [kind, accounting] : run.models.accounting)
    rows.push_back(row(to_string(kind), accounting));
  return rows;
}

json stages_json(const PreparedRun& run) {
  json rows = json::array();
  for (std::size_t i = 0; i < run.settings.stages.size(); ++i) {
    const StageSettings& stage = run.settings.stages[i];
    const sampling::VideoCompression compression = run.models.compression();
    json adapters = json::array();
    for (const weights::LoraFile* adapter : run.adapters_of(i))
      adapters.push_back(adapter->checkpoint.path().filename().string());
    rows.push_back({{"width", stage.video.width * compression.pixels},
                    {"height", stage.video.height * compression.pixels},
                    {"latent_frames", stage.video.frames},
                    {"tokens", stage.video.tokens()},
                    {"tokens_given", stage.tokens_beside},
                    {"steps", stage.schedule.steps()},
                    {"passes_per_step", sampling::needed_passes(stage.guidance).forward_passes()},
                    {"checkpoint", run.models.files.path().filename().string()},
                    {"adapters", adapters}});
  }
  return rows;
}

json plan_json(PreparedRun& run, Timing timing) {
  const RunInputs inputs = inputs_of(run);
  if (timing == Timing::measured) {
    MachineSpeed speed(run.settings.dtype);
    predict(run.plan, inputs, speed);
  }
  json all = run_json(run.plan);
  all["request"] = settled_request(run);
  all["model"] = {
      {"layout", run.models.files.layout() == ltx2::Layout::single_file ? "single file" : "diffusers folder"},
      {"version", run.models.files.version()}};
  all["components"] = component_rows(run);
  all["tokens"] = {{"video", run.settings.video.tokens()},
                   {"audio", run.settings.audio.length},
                   {"text", kTextTokens},
                   {"prompts", inputs.prompt_tokens}};
  all["passes_per_step"] = sampling::needed_passes(run.settings.stages.front().guidance).forward_passes();
  all["stages"] = stages_json(run);
  all["given"] = media_json(run);
  all["missing"] = run.settings.missing;
  all["available"] = available_memory();
  all["choices"] = choices_json(run.settings.choices);
  all["warnings"] = run.settings.warnings;
  if (run.plan.too_large()) {
    const auto remedy = smallest_change(inputs, run.plan.budget, run.plan.program);
    all["smallest_change"] =
        remedy ? json{{"flags", remedy->flags}, {"loses", remedy->loses}, {"peak", remedy->plan.peak()}}
               : json(nullptr);
  }
  return all;
}

}  // namespace
}  // namespace pipeline

std::string plan(const Request& request, const Outputs& outputs, Timing timing) {
  auto run = pipeline::prepare(request, outputs, pipeline::Purpose::plan);
  return pipeline::json_text(pipeline::plan_json(run, timing));
}

}  // namespace sluice
