#include "bytes/plan/load_plan_state.h"

#include <sluice/sinks.h>

#include <vector>

namespace sluice {
namespace {

// Pages of files: an address that agrees with its file offset modulo this suits every device's direct reads.
constexpr Bytes kCongruence = 4096;
constexpr Bytes kAlignment = 64;

Bytes element_alignment(const TargetTensor& tensor) {
  const Bytes bits = dtype_bits(tensor.dtype);
  return bits % 8 == 0 ? bits / 8 : 1;
}

// The place of a target that is not one piece of a file, behind everything so far.
Bytes place_apart(Bytes& end, const TargetTensor& tensor) {
  const Bytes begin = (end + kAlignment - 1) / kAlignment * kAlignment;
  end = begin + tensor.size;
  return begin;
}

// The first place behind `end` that agrees with the file offset.
Bytes place_congruent(Bytes& end, Bytes file_offset, Bytes size) {
  const Bytes begin = end + (file_offset % kCongruence + kCongruence - end % kCongruence) % kCongruence;
  end = begin + size;
  return begin;
}

}  // namespace

SlabLayout lay_out(const LoadPlan& plan) {
  const bytes::PlanState& state = LoadPlanAccess::state(plan);
  SlabLayout layout;
  layout.offsets.resize(state.targets.size());
  std::vector<bool> placed(state.targets.size());
  Bytes end = 0;
  for (const bytes::WantedRange& range : state.ranges) {
    const bytes::Target& target = state.targets[range.target];
    const bool one_piece = target.straight && range.size == target.tensor.size;
    if (!one_piece || range.offset % element_alignment(target.tensor) != 0) continue;
    layout.offsets[range.target] = place_congruent(end, range.offset, range.size);
    placed[range.target] = true;
  }
  for (std::size_t i = 0; i < placed.size(); ++i) {
    if (!placed[i]) layout.offsets[i] = place_apart(end, state.targets[i].tensor);
  }
  layout.size = end;
  return layout;
}

}  // namespace sluice
