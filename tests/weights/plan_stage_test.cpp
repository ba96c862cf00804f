#include "weights/stage.h"

#include "weights/random_component.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace sluice::weights {
namespace {

using test::SyntheticFile;
using ::testing::ElementsAre;

Bytes largest_of(const StagePlan& plan) {
  Bytes largest = 0;
  for (const StagePlan::Group& group : plan.groups) largest = std::max(largest, group.bytes);
  return largest;
}

TEST(PlanStage, keeps_small_groups_and_as_many_large_ones_as_were_asked_for_at_equal_distances) {
  SyntheticFile file;
  file.tensor("small.weight", Dtype::BF16, {10});
  std::deque<ParameterGroup> groups;
  std::vector<const ParameterGroup*> order;
  at::Tensor slot;
  auto add = [&](const std::string& name, std::int64_t size) {
    groups.push_back({name, {}});
    ParameterScope(groups.back(), name).add("weight", slot, {size});
    order.push_back(&groups.back());
  };
  add("small", 10);
  for (int i = 0; i < 8; ++i) {
    const std::int64_t size = i == 3 ? 6000 : 5000;
    file.tensor(fmt::format("{}.weight", i), Dtype::BF16, {size});
    add(std::to_string(i), size);
  }
  const auto written = file.write();
  const ComponentTable table = whole_checkpoint("component", Checkpoint::open(written.path()));

  const StagePlan plan = plan_stage(table, order, {.budget = 0, .resident_blocks = 2, .slots = 3});

  std::vector<bool> resident;
  for (const StagePlan::Group& group : plan.groups) resident.push_back(group.resident);
  EXPECT_THAT(resident, ElementsAre(true, false, false, false, true, false, false, false, true));
  EXPECT_EQ(plan.large_groups(), 8u);
  EXPECT_EQ(plan.large_resident(), 2u);
  EXPECT_EQ(plan.slots, 3u);
  EXPECT_EQ(plan.bytes_once(), 20u + 12000 + 7 * 10000);
  EXPECT_EQ(plan.bytes_per_pass(), 6 * 10000u);
  EXPECT_GE(plan.slot_bytes, 10000u);
  EXPECT_EQ(plan.slot_bytes % 4096, 0u);
  EXPECT_EQ(plan.memory(), plan.resident_bytes + 3 * plan.slot_bytes);

  // Whatever is asked for, more than all do not stay.
  EXPECT_EQ(plan_stage(table, order, {.resident_blocks = 100}).large_resident(), 8u);
  EXPECT_EQ(plan_stage(table, order, {.resident_blocks = 100}).slots, 0u);
  // Where each has a slot, nothing is read twice.
  EXPECT_EQ(plan_stage(table, order, {.resident_blocks = 7}).bytes_per_pass(), 0u);
}

TEST(PlanStage, keeps_what_the_budget_holds_and_is_the_smallest_where_it_holds_nothing) {
  std::mt19937 random(5);
  Component component(random, 7);
  const auto order = component.order();
  const StagePlan whole = plan_stage(component.table, order);
  EXPECT_EQ(whole.slots, 0u);
  EXPECT_EQ(whole.bytes_per_pass(), 0u);
  std::size_t kept = whole.large_groups();
  for (Bytes budget = whole.memory() + 1; budget > 0; budget = budget * 9 / 10) {
    const StagePlan plan = plan_stage(component.table, order, {.budget = budget});
    EXPECT_LE(plan.large_resident(), kept);
    kept = plan.large_resident();
    if (plan.memory() > budget) {
      EXPECT_EQ(plan.slots, 1u);
      EXPECT_EQ(kept, 0u);
    }
  }
  EXPECT_EQ(kept, 0u);
  EXPECT_EQ(plan_stage(component.table, order, {.budget = 0}).slots, 1u);
  EXPECT_GE(plan_stage(component.table, order, {.budget = 0}).slot_bytes, largest_of(whole));
}

}  // namespace
}  // namespace sluice::weights
