#include "bytes/format/checkpoint_state.h"
#include "bytes/plan/plan_box.h"

#include <sluice/error.h>

#include <fmt/format.h>

namespace sluice::bytes {

void read_box(const LoadPlan& plan, std::span<std::byte> to) {
  const PlanState& state = LoadPlanAccess::state(plan);
  const Target& target = state.targets.front();
  if (to.size() != target.tensor.size) {
    throw Error(ErrorKind::internal,
                fmt::format("a box of {} bytes is read into {} bytes", target.tensor.size, to.size()));
  }
  const TensorInfo& tensor = target.parts.front().source;
  for (const WantedRange& range : state.ranges) {
    read_range(CheckpointAccess::state(state.checkpoint), tensor, range.offset - tensor.offset,
               to.subspan(range.part_offset, range.size));
  }
}

}  // namespace sluice::bytes
