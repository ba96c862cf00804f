#pragma once
// A plan for a box of one tensor, made without looking at the others: what a front needs that asks a
// checkpoint of a hundred thousand tensors for one slice at a time.

#include "bytes/plan/load_plan_state.h"

#include <span>

namespace sluice::bytes {

// One target, of the box's shape; only the box's bytes are read.  `box`: by dimension of the tensor.
// Error(mismatch) where it does not lie inside, or cuts elements smaller than a byte inside of bytes.
LoadPlan plan_box(const Checkpoint& checkpoint, const TensorInfo& tensor, std::span<const Interval> box);

// Fills `to`, exactly the target's bytes, with one buffered read for each run of the box: for boxes of few
// runs, where asking how best to read them costs more than reading.
void read_box(const LoadPlan& plan, std::span<std::byte> to);

}  // namespace sluice::bytes
