#pragma once
// How each target of a plan reaches its sink: decided from the plan and from which targets have memory of
// their own, before anything is read.

#include "bytes/plan/load_plan_state.h"

#include <optional>
#include <span>
#include <vector>

namespace sluice::bytes {

enum class Delivery {
  in_place,  // to the target's own memory, part by part
  passed,    // the sink takes the bytes as they come
  cast,      // the sink takes them cast, as they come
  staged,    // put together in a buffer first, then copied or taken whole
};

// `has_memory`: by target.  What comes as it is read must come without another target in between.
std::vector<Delivery> decide_delivery(const PlanState& plan, const std::vector<bool>& has_memory);

// Of the buffer in which a staged target is put together.
Bytes staging_size(const Target& target);

// The most that staging buffers hold at one time while the plan is read in order.
Bytes peak_staging(const PlanState& plan, std::span<const Delivery> deliveries);

// Where a part's box lies in its target as one run of bytes, in the box's own order; empty if it does not, or
// if it is cast.
std::optional<Bytes> place_in_target(const Part& part, const TargetTensor& target);

}  // namespace sluice::bytes
