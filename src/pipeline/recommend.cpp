// The profile for this machine: what to ask for so that a request fits.
#include "pipeline/json_text.h"
#include "pipeline/plan_json.h"
#include "pipeline/prepared_run.h"
#include "pipeline/remedy.h"

#include <sluice/error.h>
#include <sluice/memory.h>
#include <sluice/sluice.h>

#include <fmt/format.h>

namespace sluice {
namespace pipeline {
namespace {

using nlohmann::json;

// Below this weights come from disk: the transformer in 4 bits, and what else is needed beside it, are more.
constexpr Bytes kStageFromDiskBelow = 18'000'000'000;

std::string staging_flags(const RunPlan& plan, Bytes available) {
  const PhasePlan* denoise = plan.find("denoise");
  if (available >= kStageFromDiskBelow || !denoise) return "--stage-from auto";
  const ComponentStaging& staging = denoise->staging.front();
  return fmt::format("--stage-from disk --resident-blocks {}", staging.plan.large_resident());
}

// The phase that takes the most, and what of it.
std::string scarce(const RunPlan& plan) {
  const PhasePlan& phase =
      *std::ranges::max_element(plan.phases, {}, [&](const PhasePlan& p) { return plan.memory(p); });
  return fmt::format("memory: the phase '{}' takes {} of {}", phase.name, format_bytes(plan.memory(phase)),
                     format_bytes(plan.budget.total));
}

json recommendation(PreparedRun& run, Bytes available) {
  const RunInputs inputs = inputs_of(run);
  std::string flags, loses = "nothing";
  RunPlan plan = run.plan;
  if (plan.too_large()) {
    auto change = smallest_change(inputs, plan.budget, plan.program);
    if (!change) refuse(inputs, plan);
    flags = change->flags + " ";
    loses = change->loses;
    plan = std::move(change->plan);
  }
  flags += staging_flags(plan, available);
  if (const auto limit = run.request.memory_limit) flags += fmt::format(" --memory-limit {}", *limit);
  return {{"profile", "cpu"},
          {"reason",
           "this program computes on the CPU; high, medium and low are for machines that compute on "
           "a GPU"},
          {"stage_from", available < kStageFromDiskBelow ? "disk" : "auto"},
          {"stage_from_disk_below", kStageFromDiskBelow},
          {"available", available},
          {"scarce", scarce(plan)},
          {"flags", flags},
          {"loses", loses},
          {"plan", run_json(plan)}};
}

}  // namespace
}  // namespace pipeline

std::string recommend(const Request& request) {
  auto run = pipeline::prepare(request, {}, pipeline::Purpose::plan);
  return pipeline::json_text(
      pipeline::recommendation(run, std::min(available_memory(), run.plan.budget.total)));
}

}  // namespace sluice
