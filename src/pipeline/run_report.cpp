#include "pipeline/run_report.h"

#include "pipeline/account.h"
#include "pipeline/clip_outputs.h"
#include "pipeline/plan_json.h"

namespace sluice::pipeline {
namespace {

using nlohmann::json;

json choices_of(const PreparedRun& run, const Backends& backends) {
  json choices = choices_json(run.settings.choices);
  choices.push_back({{"what", "read-backend"}, {"value", backends.chosen()}, {"reason", backends.reason()}});
  if (const CachePolicy cache = run.request.cache; cache != CachePolicy::automatic)
    choices.push_back({{"what", "cache"}, {"value", to_string(cache)}, {"reason", "asked for"}});
  return choices;
}

json phase_rows(const PreparedRun& run, const RunFigures& figures) {
  json rows = json::array();
  for (const PhaseFigures& phase : figures.phases) {
    json row = {{"name", phase.name},
                {"seconds", phase.seconds},
                {"bytes_read", phase.bytes_read},
                {"peak_anonymous", phase.peak_anonymous},
                {"page_cache", phase.page_cache}};
    if (const PhasePlan* planned = run.plan.find(phase.name)) row["planned"] = phase_json(run.plan, *planned);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

json run_report(const PreparedRun& run, const Backends& backends, const RunFigures& figures) {
  json report = {{"request", settled_request(run)},
                 {"versions", versions()},
                 {"files", fingerprints(run.models, run.encoder.get())},
                 {"choices", choices_of(run, backends)},
                 {"warnings", run.settings.warnings},
                 {"given", media_json(run)},
                 {"memory_limit", run.plan.budget.total},
                 {"phases", phase_rows(run, figures)}};
  if (run.request.count > 1) {
    for (std::size_t clip = 0; clip < static_cast<std::size_t>(run.request.count); ++clip)
      report["seeds"].push_back(clip_seed(run.request, clip));
  }
  json& steps = report["steps"] = {{"seconds", json::array()}, {"anonymous", json::array()}};
  for (const StepFigures& step : figures.steps) {
    steps["seconds"].push_back(step.seconds);
    steps["anonymous"].push_back(step.anonymous);
  }
  for (const std::string& warning : backends.warnings()) report["warnings"].push_back(warning);
  if (run.positive && run.positive->tokens) {
    report["prompt"] = {{"tokens", run.positive->tokens->tokens},
                        {"tokens_kept", run.positive->tokens->ids.size()}};
  }
  if (const auto& fit = figures.sound_fit)
    report["sound"] = {{"samples", fit->samples}, {"silence_added", fit->silence}, {"cut", fit->cut}};
  if (!figures.resumed.empty()) report["resumed"] = figures.resumed;
  return report;
}

}  // namespace sluice::pipeline
