#include "weights/stage_ring/stage_schedule.h"

#include <gmock/gmock.h>

#include <stdexcept>

namespace sluice::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Everything that is to be filled now, as groups.
std::vector<std::size_t> fill_all(StageSchedule& schedule) {
  std::vector<std::size_t> groups;
  while (const auto fill = schedule.next()) {
    schedule.filled(*fill);
    groups.push_back(fill->group);
  }
  return groups;
}

void lease(StageSchedule& schedule, std::size_t group) {
  schedule.demand(group);
  fill_all(schedule);
  schedule.lease();
}

TEST(StageSchedule, has_nothing_to_fill_where_no_group_exists) {
  StageSchedule schedule({{}, 0, 0});

  EXPECT_FALSE(schedule.next());
}

TEST(StageSchedule, fills_what_is_demanded_first_then_what_comes_next_as_far_as_slots_go) {
  StageSchedule schedule({std::vector<bool>(6, false), 3, 0});
  schedule.demand(4);

  EXPECT_THAT(fill_all(schedule), ElementsAre(4, 5, 0));
}

TEST(StageSchedule, fills_groups_with_a_place_of_their_own_in_turn_with_the_others) {
  StageSchedule schedule({{false, true, false, true, false, true}, 2, 0});
  schedule.demand(0);

  EXPECT_THAT(fill_all(schedule), ElementsAre(0, 1, 2, 3));
}

TEST(StageSchedule, puts_groups_into_their_own_places_and_the_rest_into_slots) {
  StageSchedule schedule({{true, false}, 1, 0});
  schedule.demand(0);

  EXPECT_EQ(schedule.next()->place, 0u);
  EXPECT_EQ(schedule.next()->place, 2u);
}

TEST(StageSchedule, gives_up_what_is_needed_last_for_a_group_out_of_turn) {
  StageSchedule schedule({std::vector<bool>(8, false), 3, 0});
  lease(schedule, 0);  // and 1, 2 ahead

  schedule.demand(5);
  const auto fill = schedule.next();

  EXPECT_EQ(fill->group, 5u);
  schedule.filled(*fill);
  schedule.lease();
  schedule.release(0);
  // Of 1 and 2, seen from 5, the later one had gone.
  EXPECT_THAT(fill_all(schedule), ElementsAre(6, 7));
}

TEST(StageSchedule, keeps_a_demanded_group_until_it_is_leased) {
  StageSchedule schedule({std::vector<bool>(4, false), 1, 0});
  schedule.demand(2);
  schedule.filled(*schedule.next());

  EXPECT_FALSE(schedule.next());
  EXPECT_TRUE(schedule.place_of_demanded());
}

TEST(StageSchedule, does_not_try_again_ahead_what_failed) {
  StageSchedule schedule({std::vector<bool>(3, false), 2, 0});
  lease(schedule, 0);
  schedule.release(0);
  schedule.demand(1);
  schedule.lease();
  const auto ahead = schedule.next();
  schedule.failed(*ahead, std::make_exception_ptr(std::runtime_error("no")));

  EXPECT_EQ(ahead->group, 2u);
  EXPECT_THAT(fill_all(schedule), ElementsAre(0));
  schedule.demand(2);
  EXPECT_TRUE(schedule.take_error_of_demanded());
  EXPECT_FALSE(schedule.take_error_of_demanded());
  EXPECT_EQ(schedule.next()->group, 2u);
}

TEST(StageSchedule, reads_ahead_for_as_many_passes_as_there_are) {
  StageSchedule schedule({std::vector<bool>(2, false), 1, 1});
  lease(schedule, 0);
  schedule.release(0);
  EXPECT_THAT(fill_all(schedule), ElementsAre(1));
  lease(schedule, 1);
  schedule.release(1);

  EXPECT_THAT(fill_all(schedule), IsEmpty());
}

}  // namespace
}  // namespace sluice::weights
