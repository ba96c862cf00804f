// Boxes of one tensor: the bytes that are read, and what is refused.
#include "bytes/plan/plan_box.h"

#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <sluice/sinks.h>

#include <gmock/gmock.h>

#include <vector>

namespace sluice {
namespace {

using bytes::Interval;
using bytes::plan_box;
using test::SyntheticFile;
using test::ThrowsError;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two tensors, of which "a" holds 3 rows of 4 numbers.
SyntheticFile two_tensors() {
  return SyntheticFile().tensor("a", Dtype::U8, {3, 4}).tensor("b", Dtype::U8, {5});
}

LoadPlan plan_of(const Checkpoint& checkpoint, const std::vector<Interval>& box) {
  return plan_box(checkpoint, *checkpoint.find("a"), box);
}

TEST(PlanBox, reads_only_the_box) {
  const auto file = two_tensors().write();
  const auto checkpoint = Checkpoint::open(file.path());

  const auto plan = plan_of(checkpoint, {{1, 2}, {1, 2}});

  ASSERT_EQ(plan.targets().size(), 1u);
  EXPECT_THAT(plan.targets()[0].shape, ElementsAre(2, 2));
  EXPECT_EQ(plan.read_bytes(), 4u);
}

TEST(PlanBox, delivers_the_elements_in_it) {
  const auto file = two_tensors().write();
  const auto checkpoint = Checkpoint::open(file.path());
  std::vector<std::byte> whole(12);
  checkpoint.read(*checkpoint.find("a"), whole);

  const auto plan = plan_of(checkpoint, {{1, 2}, {1, 2}});
  const auto loaded = load_dictionary(plan);
  std::vector<std::byte> read(4);
  bytes::read_box(plan, read);

  EXPECT_THAT(loaded.find("a")->bytes, ElementsAre(whole[5], whole[6], whole[9], whole[10]));
  EXPECT_THAT(read, ElementsAre(whole[5], whole[6], whole[9], whole[10]));
}

TEST(PlanBox, may_be_empty) {
  const auto file = two_tensors().write();

  const auto plan = plan_of(Checkpoint::open(file.path()), {{3, 0}, {0, 4}});

  EXPECT_THAT(plan.targets()[0].shape, ElementsAre(0, 4));
  EXPECT_EQ(plan.read_bytes(), 0u);
}

TEST(PlanBox, beyond_the_tensor_is_refused) {
  const auto file = two_tensors().write();
  const auto checkpoint = Checkpoint::open(file.path());

  EXPECT_THAT(
      [&] {
        plan_of(checkpoint, {{0, 3}, {2, 3}});
      },
      ThrowsError(ErrorKind::mismatch, HasSubstr("'a'")));
  EXPECT_THAT(
      [&] {
        plan_of(checkpoint, {{0, 3}});
      },
      ThrowsError(ErrorKind::mismatch, HasSubstr("'a' [3, 4] has no box of 1 dimensions")));
}

}  // namespace
}  // namespace sluice
