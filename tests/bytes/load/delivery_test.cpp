#include "bytes/load/delivery.h"

#include <gmock/gmock.h>

namespace sluice::bytes {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;

// A part that is the box [begin, begin + extent) of a source, at `at` in the target.
Part part(std::vector<Interval> box, std::vector<std::int64_t> at, Dtype dtype = Dtype::F32) {
  Part part{.source = {.name = "source", .dtype = dtype}, .box = std::move(box), .at = std::move(at)};
  for (std::size_t d = 0; d < part.box.size(); ++d) part.to_dim.push_back(d);
  return part;
}

Target straight(Bytes size) {
  Target target{
      .tensor = {.name = "t", .dtype = Dtype::U8, .shape = {static_cast<std::int64_t>(size)}, .size = size}};
  target.parts.push_back(part({{0, static_cast<std::int64_t>(size)}}, {0}, Dtype::U8));
  target.assembled = Dtype::U8;
  target.straight = true;
  return target;
}

WantedRange range(Bytes offset, Bytes size, std::size_t target) {
  return {.offset = offset, .size = size, .target = target};
}

PlanState plan(std::vector<Target> targets, std::vector<WantedRange> ranges) {
  PlanState state{Checkpoint()};
  state.targets = std::move(targets);
  state.ranges = std::move(ranges);
  return state;
}

TEST(Delivery, passes_a_straight_target_on_and_fills_one_that_has_memory) {
  const PlanState state = plan({straight(4), straight(4)}, {range(0, 4, 0), range(4, 4, 1)});

  EXPECT_THAT(decide_delivery(state, {false, true}), ElementsAre(Delivery::passed, Delivery::in_place));
}

TEST(Delivery, stages_targets_whose_bytes_are_interleaved) {
  const PlanState state =
      plan({straight(4), straight(4)}, {range(0, 2, 0), range(2, 2, 1), range(4, 2, 0), range(6, 2, 1)});

  EXPECT_THAT(decide_delivery(state, {false, false}), ElementsAre(Delivery::staged, Delivery::staged));
}

TEST(Delivery, stages_what_is_quantized_also_into_memory) {
  Target target = straight(4);
  target.quantized = true;
  const PlanState state = plan({target}, {range(0, 4, 0)});

  EXPECT_THAT(decide_delivery(state, {true}), ElementsAre(Delivery::staged));
}

TEST(Delivery, counts_the_staging_buffers_that_exist_at_one_time) {
  const PlanState state =
      plan({straight(4), straight(8), straight(16)},
           {range(0, 2, 0), range(2, 4, 1), range(6, 2, 0), range(8, 4, 1), range(12, 16, 2)});
  const std::vector<Delivery> staged(3, Delivery::staged);

  EXPECT_EQ(peak_staging(state, staged), 16u);  // 4 + 8 together, then 16 alone
}

TEST(Delivery, counts_quantized_values_beside_what_they_come_from) {
  Target target = straight(4);
  target.quantized = true;
  target.parts.front().source.dtype = target.assembled = Dtype::F32;
  const PlanState state = plan({target}, {range(0, 16, 0)});

  EXPECT_EQ(peak_staging(state, decide_delivery(state, {false})), 20u);
}

TEST(Delivery, finds_the_place_of_whole_rows) {
  const TargetTensor target{.dtype = Dtype::F32, .shape = {4, 3}};

  EXPECT_THAT(place_in_target(part({{0, 2}, {0, 3}}, {1, 0}), target), Optional(Bytes(12)));
}

TEST(Delivery, finds_no_place_for_columns_casts_and_transposed_boxes) {
  const TargetTensor target{.dtype = Dtype::F32, .shape = {4, 3}};
  Part transposed = part({{0, 3}, {0, 4}}, {0, 0});
  transposed.to_dim = {1, 0};

  EXPECT_THAT(place_in_target(part({{0, 4}, {0, 2}}, {0, 1}), target), Eq(std::nullopt));
  EXPECT_THAT(place_in_target(part({{0, 4}, {0, 3}}, {0, 0}, Dtype::BF16), target), Eq(std::nullopt));
  EXPECT_THAT(place_in_target(transposed, target), Eq(std::nullopt));
}

TEST(Delivery, finds_the_place_of_a_piece_of_one_row_and_of_a_scalar) {
  EXPECT_THAT(place_in_target(part({{5, 1}, {0, 2}}, {2, 1}), {.dtype = Dtype::BF16, .shape = {4, 3}}),
              Eq(std::nullopt));
  EXPECT_THAT(
      place_in_target(part({{5, 1}, {0, 2}}, {2, 1}, Dtype::BF16), {.dtype = Dtype::BF16, .shape = {4, 3}}),
      Optional(Bytes(14)));
  EXPECT_THAT(place_in_target(part({}, {}), {.dtype = Dtype::F32}), Optional(Bytes(0)));
}

}  // namespace
}  // namespace sluice::bytes
