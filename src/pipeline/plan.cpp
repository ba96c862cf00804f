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

json plan_json(PreparedRun& run, Timing timing) {
  const RunInputs inputs = inputs_of(run);
  if (timing == Timing::measured) {
    MachineSpeed speed(run.settings.dtype);
    predict(run.plan, inputs, speed);
  }
  json all = run_json(run.plan);
  all["request"] = settled_request(run.request, run.settings, run.threads);
  all["model"] = {
      {"layout", run.models.files.layout() == ltx2::Layout::single_file ? "single file" : "diffusers folder"},
      {"version", run.models.files.version()}};
  all["components"] = component_rows(run);
  all["tokens"] = {{"video", run.settings.video.tokens()},
                   {"audio", run.settings.audio.length},
                   {"text", kTextTokens},
                   {"prompts", inputs.prompt_tokens}};
  all["passes_per_step"] = sampling::needed_passes(run.settings.guidance).forward_passes();
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
