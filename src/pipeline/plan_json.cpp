#include "pipeline/plan_json.h"

#include <array>

namespace sluice::pipeline {
namespace {

using nlohmann::json;

json staging_json(const ComponentStaging& staging) {
  return {{"component", staging.component},
          {"stage_from", to_string(staging.residence)},
          {"reason", staging.reason},
          {"blocks", staging.plan.large_groups()},
          {"resident_blocks", staging.plan.large_resident()},
          {"bytes", staging.bytes_once},
          {"anonymous", staging.anonymous},
          {"page_cache", staging.page_cache}};
}

json adapters_json(const AdapterStaging& adapters) {
  constexpr std::array<const char*, 3> kWays = {"mapped", "memory", "disk"};
  return {{"stage_from", kWays[static_cast<std::size_t>(adapters.residence)]},
          {"bytes", adapters.bytes.once},
          {"anonymous", adapters.bytes.anonymous},
          {"page_cache", adapters.bytes.page_cache}};
}

}  // namespace

json phase_json(const RunPlan& plan, const PhasePlan& phase) {
  json row = {{"name", phase.name},
              {"bytes_read", phase.bytes_read()},
              {"peak_anonymous", plan.program + phase.anonymous()},
              {"page_cache", phase.page_cache()},
              {"memory", plan.memory(phase)},
              {"parts", json::array()},
              {"weights", json::array()}};
  if (phase.steps > 0) {
    row["steps"] = phase.steps;
    row["bytes_per_step"] = phase.bytes_per_pass() * static_cast<Bytes>(phase.passes / phase.steps);
  }
  row["parts"].push_back({{"what", "program"}, {"bytes", plan.program}});
  for (const MemoryPart& part : phase.parts)
    row["parts"].push_back({{"what", part.what}, {"bytes", part.bytes}});
  for (const ComponentStaging& staging : phase.staging) row["weights"].push_back(staging_json(staging));
  if (phase.adapters) row["adapters"] = adapters_json(*phase.adapters);
  if (phase.seconds) row["seconds"] = *phase.seconds;
  return row;
}

json run_json(const RunPlan& plan) {
  Bytes read = 0, anonymous = plan.program;
  double seconds = 0;
  bool timed = !plan.phases.empty();
  json phases = json::array();
  for (const PhasePlan& phase : plan.phases) {
    phases.push_back(phase_json(plan, phase));
    read += phase.bytes_read();
    anonymous = std::max(anonymous, plan.program + phase.anonymous());
    seconds += phase.seconds.value_or(0);
    timed = timed && phase.seconds.has_value();
  }
  json all = {{"limit", plan.budget.total},
              {"limit_source", plan.budget.source},
              {"peak", plan.peak()},
              {"peak_anonymous", anonymous},
              {"program", plan.program},
              {"reserve", plan.reserve()},
              {"fits", plan.too_large() == nullptr},
              {"bytes_read", read},
              {"phases", std::move(phases)}};
  if (timed) all["seconds"] = seconds;
  return all;
}

}  // namespace sluice::pipeline
