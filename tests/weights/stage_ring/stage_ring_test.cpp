#include "weights/stage_ring/stage_ring.h"

#include "support/faulty_syscalls.h"
#include "support/throws_error.h"
#include "weights/stage_ring/late_fills.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

namespace sluice::weights {
namespace {

using test::FaultySyscalls;
using test::ThrowsError;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::size_t kBytes = 257;

std::function<void(const std::string&)> silent() {
  return [](const std::string&) {};
}

// A ring over late fills.
struct Stage {
  Stage(StageShape shape, FillPace pace, unsigned seed = 7)
      : groups(shape.resident.size()),
        engine(groups + shape.slots, kBytes, pace, seed),
        ring(engine, std::move(shape), [this](const std::string& line) { warnings.push_back(line); }) {}

  // Leases the group and looks at its bytes, now and a moment later.
  bool use(std::size_t group, const CancelToken* cancel = nullptr) {
    const std::size_t place = ring.acquire(group, cancel);
    bool right = engine.holds(place, group);
    std::this_thread::yield();
    right = right && engine.holds(place, group);
    ring.release(group);
    return right;
  }

  const std::size_t groups;
  std::vector<std::string> warnings;
  LateFills engine;
  StageRing ring;
};

StageShape streamed(std::size_t groups, std::size_t slots, std::size_t passes = 0) {
  return {std::vector<bool>(groups, false), slots, passes};
}

class Paces : public ::testing::TestWithParam<FillPace> {};
INSTANTIATE_TEST_SUITE_P(Engines, Paces, ::testing::Values(FillPace::when_waited_for, FillPace::at_random),
                         [](const auto& param) {
                           return param.param == FillPace::at_random ? "that_lag_at_random"
                                                                     : "that_lag_always";
                         });

TEST_P(Paces, give_every_group_its_bytes_pass_after_pass_whatever_stays_and_however_many_slots) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 30; ++round) {
    StageShape shape = streamed(1 + random() % 9, 1 + random() % 4, 4);
    for (auto&& resident : shape.resident) resident = random() % 3 == 0;
    const bool slot_for_each =
        static_cast<std::size_t>(std::ranges::count(shape.resident, false)) <= shape.slots;
    Stage stage(shape, GetParam(), random());
    for (int pass = 0; pass < 4; ++pass) {
      for (std::size_t group = 0; group < stage.groups; ++group) ASSERT_TRUE(stage.use(group));
    }

    std::map<std::size_t, std::size_t> fills;
    for (std::size_t group : stage.engine.fills()) ++fills[group];
    for (std::size_t group = 0; group < stage.groups; ++group)
      EXPECT_EQ(fills[group], shape.resident[group] || slot_for_each ? 1u : 4u);
  }
}

TEST_P(Paces, give_the_right_bytes_in_any_order_and_nested) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 30; ++round) {
    StageShape shape = streamed(2 + random() % 8, 2 + random() % 3);
    for (auto&& resident : shape.resident) resident = random() % 4 == 0;
    Stage stage(shape, GetParam(), random());
    for (int lease = 0; lease < 20; ++lease) {
      const std::size_t outer = random() % stage.groups, inner = random() % stage.groups;
      const std::size_t place = stage.ring.acquire(outer);
      ASSERT_TRUE(stage.use(inner));
      ASSERT_TRUE(stage.engine.holds(place, outer));
      stage.ring.release(outer);
    }
  }
}

// What a ring that forgets to wait would give.
class ImpatientFills final : public LateFills {
 public:
  using LateFills::LateFills;
  void wait(std::size_t) override {}
};

TEST(LateFills, show_a_missing_wait_as_wrong_bytes) {
  ImpatientFills engine(3, kBytes, FillPace::when_waited_for, 7);
  StageRing ring(engine, streamed(2, 1), silent());

  const std::size_t place = ring.acquire(0);

  EXPECT_FALSE(engine.holds(place, 0));
  ring.release(0);
}

TEST(LateFills, spoil_what_is_looked_at_after_its_release) {
  Stage stage(streamed(2, 1), FillPace::when_waited_for);
  const std::size_t place = stage.ring.acquire(0);
  stage.ring.release(0);

  EXPECT_FALSE(stage.engine.holds(place, 0));
}

// Waits for the reader; what is never begun would let the test run into its limit.
void wait_for_fills(Stage& stage, std::size_t count) {
  while (stage.engine.fills().size() < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(StageRing, fills_the_next_group_while_one_is_leased_also_across_the_end_of_a_pass) {
  Stage stage(streamed(3, 2), FillPace::at_random);

  stage.ring.acquire(2);
  wait_for_fills(stage, 2);

  EXPECT_THAT(stage.engine.fills(), ElementsAre(2, 0));
  stage.ring.release(2);
  wait_for_fills(stage, 3);
  EXPECT_THAT(stage.engine.fills(), ElementsAre(2, 0, 1));
}

TEST(StageRing, reads_nothing_ahead_of_the_last_pass) {
  Stage stage(streamed(3, 2, 2), FillPace::at_random);

  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t group = 0; group < 3; ++group) EXPECT_TRUE(stage.use(group));
  }

  EXPECT_THAT(stage.engine.fills(), ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(StageRing, fills_groups_that_stay_once_whatever_the_order) {
  Stage stage({{true, true, true}, 0, 0}, FillPace::at_random);
  for (std::size_t group : {2, 0, 1, 0, 2, 1, 1}) EXPECT_TRUE(stage.use(group));

  EXPECT_THAT(stage.engine.fills(), SizeIs(3));
}

TEST(StageRing, lends_a_group_again_while_it_is_leased) {
  Stage stage(streamed(3, 1), FillPace::at_random);
  const std::size_t place = stage.ring.acquire(1);

  EXPECT_EQ(stage.ring.acquire(1), place);

  stage.ring.release(1);
  EXPECT_TRUE(stage.engine.holds(place, 1));
  stage.ring.release(1);
}

TEST(StageRing, refuses_more_leases_than_there_are_slots) {
  Stage stage(streamed(3, 2), FillPace::at_random);
  stage.ring.acquire(0);
  stage.ring.acquire(1);

  EXPECT_THAT([&] { stage.ring.acquire(2); }, ThrowsError(ErrorKind::does_not_fit, HasSubstr("slots")));

  stage.ring.release(0);
  EXPECT_TRUE(stage.use(2));
  stage.ring.release(1);
}

TEST(StageRing, throws_the_error_of_a_fill_ahead_when_its_group_is_acquired_and_then_tries_again) {
  for (bool later : {false, true}) {
    Stage stage(streamed(4, 2), FillPace::at_random);
    (later ? stage.engine.fail_later : stage.engine.fail_at_begin) = {2};

    EXPECT_TRUE(stage.use(0));
    EXPECT_TRUE(stage.use(1));
    EXPECT_THAT([&] { stage.use(2); }, ThrowsError(ErrorKind::io, HasSubstr(later ? "cannot copy to place"
                                                                                  : "cannot read group 2")));
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t group : {2, 3, 0, 1}) EXPECT_TRUE(stage.use(group));
    }
  }
}

TEST(StageRing, is_told_to_stop_while_it_waits) {
  Stage stage(streamed(3, 1), FillPace::at_random);
  CancelToken cancel;
  EXPECT_TRUE(stage.use(0, &cancel));

  cancel.cancel();

  // A group that is there already may still be lent.
  EXPECT_THAT(
      [&] {
        for (std::size_t use = 0; use < 300; ++use) stage.use(use % 3, &cancel);
      },
      ThrowsError(ErrorKind::interrupted, HasSubstr("interrupted")));
}

TEST(StageRing, fills_as_it_is_asked_where_the_system_refuses_a_thread) {
  Stage stage(streamed(4, 2), FillPace::when_waited_for);
  FaultySyscalls faults;
  faults.refuse_threads_from(1);

  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t group = 0; group < 4; ++group) EXPECT_TRUE(stage.use(group));
  }

  EXPECT_THAT(stage.engine.fills(), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(stage.warnings, ElementsAre(HasSubstr("refused a thread")));
}

TEST(StageRing, ends_while_it_fills_ahead) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Stage stage(streamed(5, 3), FillPace::at_random, seed);
    EXPECT_TRUE(stage.use(0));
  }
}

}  // namespace
}  // namespace sluice::weights
