#pragma once
// Applies the rules of a Transforms, in order, to tensors on paper.

#include "bytes/plan/load_plan_problems.h"
#include "bytes/plan/virtual_tensor.h"

#include <sluice/transforms.h>

#include <string>
#include <vector>

namespace sluice::bytes {

std::string describe(const TransformRule& rule);  // "slice 'a.*'"

// What is impossible with any checkpoint; empty if nothing is.
std::string why_impossible(const TransformRule& rule);

// Rules that are impossible are told and left out.  `may_match_nothing`: a rule that matches no tensor is no
// problem.
void apply_rules(const Transforms& transforms, bool may_match_nothing, std::vector<VirtualTensor>& tensors,
                 PlanProblems& problems);

}  // namespace sluice::bytes
