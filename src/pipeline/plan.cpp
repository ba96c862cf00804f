// What a request would need, from headers alone.
#include "base/system_memory.h"
#include "pipeline/account.h"
#include "pipeline/backends.h"
#include "pipeline/json_text.h"
#include "pipeline/prepared_run.h"

#include <sluice/memory.h>
#include <sluice/sluice.h>

#include <algorithm>
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

json plan_json(const PreparedRun& run) {
  const bool mapped = computes_in_place(run.request.read_backend);
  const Bytes program = anonymous_memory();
  json phases = json::array();
  Bytes peak = 0, read = 0;
  for (const PhaseNeeds& phase : needs_of(run, mapped)) {
    const Bytes anonymous = program + phase.anonymous;
    phases.push_back({{"name", phase.name},
                      {"bytes_read", phase.weights},
                      {"peak_anonymous", anonymous},
                      {"page_cache", phase.weights}});
    peak = std::max(peak, anonymous);
    read += phase.weights;
  }
  return {
      {"request", settled_request(run.request, run.settings, run.threads)},
      {"model",
       {{"layout",
         run.models.files.layout() == ltx2::Layout::single_file ? "single file" : "diffusers folder"},
        {"version", run.models.files.version()}}},
      {"components", component_rows(run)},
      {"tokens",
       {{"video", run.settings.video.tokens()}, {"audio", run.settings.audio.length}, {"text", kTextTokens}}},
      {"passes_per_step", sampling::needed_passes(run.settings.guidance).forward_passes()},
      {"phases", phases},
      {"bytes_read", read},
      {"peak_anonymous", peak},
      {"available", available_memory()},
      {"fits", peak <= available_memory()},
      {"choices", choices_json(run.settings.choices)},
      {"warnings", run.settings.warnings}};
}

}  // namespace
}  // namespace pipeline

std::string plan(const Request& request, const Outputs& outputs) {
  return pipeline::json_text(
      pipeline::plan_json(pipeline::prepare(request, outputs, pipeline::Purpose::plan)));
}

}  // namespace sluice
