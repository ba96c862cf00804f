#pragma once
// What a plan delivers against what its receiver has: every name, dtype and shape, before a byte is read.

#include <sluice/load.h>
#include <sluice/sinks.h>

#include <optional>
#include <span>
#include <vector>

namespace sluice::bytes {

using MatchedTargets = std::vector<std::optional<std::size_t>>;

// By target of the plan: the index into `wanted`; empty for those that are ignored.  Compared exactly, sizes
// in bytes left out.  Error(mismatch) that lists all that is missing, unexpected or of another kind.
MatchedTargets match_targets(const LoadPlan& plan, std::span<const TargetTensor> wanted,
                             UnexpectedTensors unexpected);

// The plan, whose targets that are matched to nothing are not read.
LoadPlan without_ignored(const LoadPlan& plan, const MatchedTargets& matched);

}  // namespace sluice::bytes
