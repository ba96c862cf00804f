#include "weights/group_load.h"
#include "weights/stage.h"

#include <algorithm>

namespace sluice::weights {
namespace {

// Groups smaller than the largest by this are not worth a slot.
constexpr Bytes kSmallShare = 16;

Bytes largest_of(const StagePlan& plan) {
  Bytes largest = 0;
  for (const StagePlan::Group& group : plan.groups) largest = std::max(largest, group.bytes);
  return largest;
}

bool is_large(const StagePlan::Group& group, Bytes largest) {
  return group.bytes > 0 && group.bytes * kSmallShare >= largest;
}

// `count` of the large groups stay, at equal distances, so that there is time to read the others between.
void keep(StagePlan& plan, std::size_t count, std::size_t slots, std::span<const Bytes> sizes) {
  const Bytes largest = largest_of(plan);
  const std::size_t large = plan.large_groups();
  std::size_t seen = 0, streamed = 0;
  plan.resident_bytes = 0;
  plan.slot_bytes = 0;
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    StagePlan::Group& group = plan.groups[i];
    group.resident = true;
    if (is_large(group, largest)) {
      ++seen;
      group.resident = seen * count / large > (seen - 1) * count / large;
    }
    if (group.resident) {
      plan.resident_bytes += sizes[i];
    } else {
      plan.slot_bytes = std::max(plan.slot_bytes, sizes[i]);
      ++streamed;
    }
  }
  plan.slots = std::min(slots, streamed);
}

}  // namespace

Bytes StagePlan::bytes_once() const {
  Bytes bytes = 0;
  for (const Group& group : groups) bytes += group.bytes;
  return bytes;
}

Bytes StagePlan::bytes_per_pass() const {
  Bytes bytes = 0;
  std::size_t streamed = 0;
  for (const Group& group : groups) {
    if (group.resident) continue;
    bytes += group.bytes;
    ++streamed;
  }
  return streamed > slots ? bytes : 0;
}

std::size_t StagePlan::large_groups() const {
  const Bytes largest = largest_of(*this);
  return static_cast<std::size_t>(
      std::ranges::count_if(groups, [&](const Group& group) { return is_large(group, largest); }));
}

std::size_t StagePlan::large_resident() const {
  const Bytes largest = largest_of(*this);
  return static_cast<std::size_t>(std::ranges::count_if(
      groups, [&](const Group& group) { return is_large(group, largest) && group.resident; }));
}

StagePlan plan_stage(const ComponentTable& table, std::span<const ParameterGroup* const> order,
                     const StageLimits& limits) {
  StagePlan plan;
  std::vector<Bytes> sizes;  // in memory
  for (const ParameterGroup* group : order) {
    const GroupLoad load = plan_group(table, *group);
    plan.groups.push_back({group, load.plan.read_bytes()});
    sizes.push_back(size_in_memory(load));
  }
  const std::size_t large = plan.large_groups(), slots = std::max<std::size_t>(1, limits.slots);
  if (limits.resident_blocks) {
    keep(plan, std::min(*limits.resident_blocks, large), slots, sizes);
    return plan;
  }
  for (std::size_t streamed = 0; streamed <= large; ++streamed) {
    keep(plan, large - streamed, slots, sizes);
    if (plan.memory() <= limits.budget) return plan;
  }
  for (std::size_t fewer = slots - 1; fewer > 0 && plan.memory() > limits.budget; --fewer)
    keep(plan, 0, fewer, sizes);
  return plan;
}

}  // namespace sluice::weights
