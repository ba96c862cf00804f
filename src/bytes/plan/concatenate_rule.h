#pragma once
// The rule that makes one tensor of several: finds the sets that belong together by what "*" stands for.

#include "bytes/plan/load_plan_problems.h"
#include "bytes/plan/virtual_tensor.h"

#include <sluice/transforms.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice::bytes {

// What is wrong with any rule but a renaming for a tensor that was quantized before.
inline constexpr std::string_view kQuantized = "is quantized already: only renaming can follow that";

// The results take the place of the tensors that they are made of.  `described`: the rule, for messages.
// Returns how many tensors the globs match.
std::size_t apply_concatenate(const ConcatenateRule& rule, const std::string& described,
                              std::vector<VirtualTensor>& tensors, PlanProblems& problems);

}  // namespace sluice::bytes
