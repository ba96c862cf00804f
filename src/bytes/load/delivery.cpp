#include "bytes/load/delivery.h"

#include "bytes/format/dtype.h"

#include <algorithm>

namespace sluice::bytes {
namespace {

// First and last range of each target, to see whether others lie between.
struct Reach {
  std::size_t first = 0, last = 0, count = 0;
};

std::vector<Reach> reaches(const PlanState& plan) {
  std::vector<Reach> reaches(plan.targets.size());
  for (std::size_t i = 0; i < plan.ranges.size(); ++i) {
    Reach& reach = reaches[plan.ranges[i].target];
    if (reach.count++ == 0) reach.first = i;
    reach.last = i;
  }
  return reaches;
}

Delivery decide(const Target& target, const Reach& reach, bool has_memory) {
  if (target.quantized) return Delivery::staged;
  if (has_memory) return Delivery::in_place;
  const bool alone = reach.count == 0 || reach.last - reach.first + 1 == reach.count;
  if (alone && target.straight) return Delivery::passed;
  if (alone && target.cast_only) return Delivery::cast;
  return Delivery::staged;
}

}  // namespace

std::vector<Delivery> decide_delivery(const PlanState& plan, const std::vector<bool>& has_memory) {
  const std::vector<Reach> all = reaches(plan);
  std::vector<Delivery> deliveries;
  deliveries.reserve(plan.targets.size());
  for (std::size_t i = 0; i < plan.targets.size(); ++i)
    deliveries.push_back(decide(plan.targets[i], all[i], has_memory[i]));
  return deliveries;
}

Bytes staging_size(const Target& target) {
  return checked_size(target.assembled, target.tensor.shape).value();
}

Bytes peak_staging(const PlanState& plan, std::span<const Delivery> deliveries) {
  const std::vector<Reach> all = reaches(plan);
  Bytes held = 0, peak = 0;
  for (std::size_t i = 0; i < plan.ranges.size(); ++i) {
    const std::size_t target = plan.ranges[i].target;
    if (deliveries[target] != Delivery::staged) continue;
    const Target& staged = plan.targets[target];
    if (all[target].first == i) held += staging_size(staged);
    // The quantized values exist beside what they come from.
    peak = std::max(peak, held + (staged.quantized && all[target].last == i ? staged.tensor.size : 0));
    if (all[target].last == i) held -= staging_size(staged);
  }
  return peak;
}

std::optional<Bytes> place_in_target(const Part& part, const TargetTensor& target) {
  if (part.source.dtype != target.dtype || !part.casts.empty()) return std::nullopt;
  const std::size_t dims = part.box.size();
  bool whole_behind = true;  // all dimensions behind this one are covered
  for (std::size_t d = dims; d-- > 0;) {
    if (part.to_dim[d] != d) return std::nullopt;
    if (!whole_behind && part.box[d].extent != 1) return std::nullopt;
    whole_behind = whole_behind && part.box[d].extent == target.shape[d];
  }
  Bytes element = 0;
  for (std::size_t d = 0; d < dims; ++d)
    element = element * static_cast<Bytes>(target.shape[d]) + static_cast<Bytes>(part.at[d]);
  return element * dtype_bits(target.dtype) / 8;
}

}  // namespace sluice::bytes
