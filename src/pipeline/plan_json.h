#pragma once
// A planned run as JSON: for `plan`, and for the report, which sets the measured figures beside it.

#include "pipeline/run_plan.h"

#include <nlohmann/json.hpp>

namespace sluice::pipeline {

// {name, bytes_read, bytes_per_step, peak_anonymous, page_cache, memory, parts: [{what, bytes}],
//  weights: [{component, stage_from, resident_blocks, …, reason}], seconds}
nlohmann::json phase_json(const RunPlan& plan, const PhasePlan& phase);

// {limit, source, peak, program, fits, phases: […]}
nlohmann::json run_json(const RunPlan& plan);

}  // namespace sluice::pipeline
