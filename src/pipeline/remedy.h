#pragma once
// What would fit where a request does not: the change that takes the least away, tried on the plan itself.

#include "pipeline/run_plan.h"

#include <optional>
#include <string>

namespace sluice::pipeline {

struct Remedy {
  std::string flags;  // as they are given: "--frames 65"
  std::string loses;  // "a shorter clip"
  RunPlan plan;
};

// In this order: settings of this program that a request holds back, fewer frames, a smaller picture, both.
// Empty where not even the smallest clip fits.
std::optional<Remedy> smallest_change(const RunInputs& inputs, const MemoryBudget& budget, Bytes program);

// Error(does_not_fit) that states phase, need, what it consists of, what there is, and the change above.
[[noreturn]] void refuse(const RunInputs& inputs, const RunPlan& plan);

}  // namespace sluice::pipeline
