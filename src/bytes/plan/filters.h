#pragma once
// Which tensors of a checkpoint a process keeps: globs, the parts of a model that are seldom wanted, and its
// share of the experts.  Names alone decide.

#include "bytes/plan/load_plan_problems.h"

#include <sluice/load.h>

#include <span>
#include <vector>

namespace sluice::bytes {

// The tensors that the filter wants, in their order.  An include glob that matches nothing, and a filter that
// leaves nothing, are problems.
std::vector<const TensorInfo*> filter_tensors(std::span<const TensorInfo> tensors, const TensorFilter& filter,
                                              PlanProblems& problems);

// Drops the experts of other ranks from `kept`.  Experts are counted in `all`, so that who owns which does
// not depend on the filter.  True if this rank has none of the experts of some prefix: rules that are meant
// for them match nothing then.
bool drop_foreign_experts(std::vector<const TensorInfo*>& kept, std::span<const TensorInfo> all,
                          const Rank& rank);

}  // namespace sluice::bytes
