#pragma once
// A plan as the ring of slots sees it.

#include "weights/stage.h"
#include "weights/stage_ring/stage_schedule.h"

namespace sluice::weights {

inline StageShape shape_of(const StagePlan& plan, std::size_t passes) {
  StageShape shape{.resident = {}, .slots = plan.slots, .passes = passes};
  for (const StagePlan::Group& group : plan.groups) shape.resident.push_back(group.resident);
  return shape;
}

}  // namespace sluice::weights
