// Which bytes a plan reads, in which order targets are complete, what is deferred and what it costs in
// memory.
#include "bytes/plan/load_plan_state.h"

#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace sluice {
namespace {

using bytes::WantedRange;
using test::index_text;
using test::SyntheticFile;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using test::WrittenFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A plan, and the file while it is in use.
struct Planned {
  WrittenFile file;
  Bytes data;  // where it begins in the file
  LoadPlan plan;

  Planned(const SyntheticFile& from, const LoadRequest& request = {})
      : file(from.write()),
        data(8 + from.header_text().size()),
        plan(plan_load(Checkpoint::open(file.path()), request)) {}
  Planned(const SyntheticFile& from, const Transforms& transforms)
      : Planned(from, LoadRequest{.transforms = transforms}) {}

  const bytes::PlanState& state() const { return LoadPlanAccess::state(plan); }

  // "target.part@part_offset: begin+size", counted from the start of the data.
  std::vector<std::string> ranges() const {
    std::vector<std::string> ranges;
    for (const WantedRange& range : state().ranges) {
      ranges.push_back(fmt::format("{}.{}@{}: {}+{}", state().targets[range.target].tensor.name, range.part,
                                   range.part_offset, range.offset - data, range.size));
    }
    return ranges;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const TargetTensor& target : plan.targets()) names.push_back(target.name);
    return names;
  }
};

TEST(LoadPlan, of_everything_has_one_range_a_tensor_and_goes_straight) {
  const Planned planned(SyntheticFile().tensor("b", Dtype::F32, {2, 3}).tensor("a", Dtype::U8, {}));

  EXPECT_THAT(planned.ranges(), ElementsAre("b.0@0: 0+24", "a.0@0: 24+1"));
  EXPECT_THAT(planned.names(), ElementsAre("b", "a"));
  EXPECT_TRUE(planned.state().targets[0].straight);
  EXPECT_TRUE(planned.state().targets[1].straight);
  EXPECT_EQ(planned.plan.read_bytes(), 25u);
  EXPECT_EQ(planned.plan.target_bytes(), 25u);
}

TEST(LoadPlan, of_an_empty_file_is_empty) {
  const Planned planned{SyntheticFile()};

  EXPECT_THAT(planned.names(), IsEmpty());
  EXPECT_EQ(planned.plan.read_bytes(), 0u);
}

TEST(LoadPlan, reads_nothing_of_what_is_filtered_out) {
  const Planned planned(SyntheticFile().tensor("a", Dtype::U8, {4}).tensor("b", Dtype::U8, {2}),
                        LoadRequest{.filter = {.include = {"b"}}});

  EXPECT_THAT(planned.ranges(), ElementsAre("b.0@0: 4+2"));
  EXPECT_EQ(planned.plan.read_bytes(), 2u);
}

TEST(LoadPlan, of_rows_is_one_range_and_of_columns_one_for_each_row) {
  const SyntheticFile file = SyntheticFile().tensor("a", Dtype::U8, {4, 6});
  const Planned rows(file, LoadRequest{.rank = {.index = 1, .world = 2, .slices = {{"a", 0}}}});
  const Planned columns(file, LoadRequest{.rank = {.index = 1, .world = 2, .slices = {{"a", 1}}}});

  EXPECT_THAT(rows.ranges(), ElementsAre("a.0@0: 12+12"));
  EXPECT_THAT(columns.ranges(), ElementsAre("a.0@0: 3+3", "a.0@3: 9+3", "a.0@6: 15+3", "a.0@9: 21+3"));
  EXPECT_TRUE(rows.state().targets[0].straight);
  EXPECT_TRUE(columns.state().targets[0].straight);
}

TEST(LoadPlan, reads_what_lies_together_as_one_range) {
  const Planned planned(SyntheticFile().tensor("a", Dtype::U8, {3, 1, 4}), Transforms().slice("a", 0, 1, 3));
  const Planned inner(SyntheticFile().tensor("a", Dtype::U8, {2, 4, 3}), Transforms().slice("a", 1, 1, 3));

  EXPECT_THAT(planned.ranges(), ElementsAre("a.0@0: 4+8"));
  EXPECT_THAT(inner.ranges(), ElementsAre("a.0@0: 3+6", "a.0@6: 15+6"));
}

TEST(LoadPlan, of_a_cut_into_millions_of_crumbs_is_refused_before_any_is_listed) {
  TemporaryFolder folder;
  auto path = folder / "big.safetensors";
  constexpr Bytes kData = GiB(40);
  SyntheticFile()
      .header(
          fmt::format(R"({{"a":{{"dtype":"U8","shape":[{},2],"data_offsets":[0,{}]}}}})", kData / 2, kData))
      .write_to(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + kData);  // a hole: no disk is used

  EXPECT_THAT([&] { plan_load(Checkpoint::open(path), {.transforms = Transforms().slice("a", 1, 0, 1)}); },
              ThrowsError(ErrorKind::mismatch, HasSubstr("is cut into 21474836480 pieces")));
}

TEST(LoadPlan, sorts_the_ranges_of_parts_that_lie_between_each_other) {
  const Planned planned(SyntheticFile().tensor("a", Dtype::U8, {2, 4}),
                        Transforms().split("a", 1, {"l", "r"}));

  EXPECT_THAT(planned.ranges(), ElementsAre("l.0@0: 0+2", "r.0@0: 2+2", "l.0@2: 4+2", "r.0@2: 6+2"));
}

TEST(LoadPlan, completes_targets_in_the_order_of_their_last_byte) {
  const Planned planned(
      SyntheticFile().tensor("a", Dtype::U8, {1}).tensor("b", Dtype::U8, {1}).tensor("c", Dtype::U8, {1}),
      Transforms().concatenate({"c", "a"}, 0, "ca"));

  EXPECT_THAT(planned.names(), ElementsAre("b", "ca"));
  EXPECT_THAT(planned.ranges(), ElementsAre("ca.1@0: 0+1", "b.0@0: 1+1", "ca.0@0: 2+1"));
}

TEST(LoadPlan, completes_a_target_before_another_that_began_earlier_and_ends_later) {
  const Planned planned(SyntheticFile().tensor("a", Dtype::U8, {2, 2}),
                        Transforms().split("a", 1, {"left", "right"}).slice("right", 0, 0, 1));

  EXPECT_THAT(planned.names(), ElementsAre("right", "left"));
  EXPECT_THAT(planned.ranges(), ElementsAre("left.0@0: 0+1", "right.0@0: 1+1", "left.0@1: 2+1"));
}

TEST(LoadPlan, of_a_set_reads_shard_by_shard) {
  TemporaryFolder folder;
  SyntheticFile().tensor("a", Dtype::U8, {2}).tensor("z", Dtype::U8, {2}).write_to(folder / "2.safetensors");
  SyntheticFile().tensor("b", Dtype::U8, {2}).write_to(folder / "1.safetensors");
  write_file(folder / "model.safetensors.index.json",
             index_text({{"a", "2.safetensors"}, {"b", "1.safetensors"}, {"z", "2.safetensors"}}));

  const LoadPlan plan = plan_load(Checkpoint::open(folder.path()),
                                  {.transforms = Transforms().concatenate({"a", "b"}, 0, "ab")});

  std::vector<std::size_t> shards;
  for (const WantedRange& range : LoadPlanAccess::state(plan).ranges) shards.push_back(range.shard);
  EXPECT_THAT(shards, ElementsAre(0, 1, 1));
  EXPECT_EQ(plan.targets()[0].name, "ab");
  EXPECT_EQ(plan.targets()[1].name, "z");
}

TEST(LoadPlan, knows_what_only_casts_in_order) {
  const Planned planned(SyntheticFile().tensor("a", Dtype::F16, {2, 2}).tensor("b", Dtype::F16, {2, 2}),
                        Transforms().cast("*", Dtype::F32).transpose("b"));

  EXPECT_TRUE(planned.state().targets[0].cast_only);
  EXPECT_FALSE(planned.state().targets[0].straight);
  EXPECT_FALSE(planned.state().targets[1].cast_only);
  EXPECT_EQ(planned.plan.target_bytes(), 32u);
  EXPECT_EQ(planned.plan.read_bytes(), 16u);
}

TEST(LoadPlan, knows_that_turning_dimensions_of_one_changes_no_order) {
  const Planned planned(SyntheticFile().tensor("a", Dtype::F16, {1, 5}), Transforms().transpose("a"));

  EXPECT_TRUE(planned.state().targets[0].straight);
  EXPECT_THAT(planned.plan.targets()[0].shape, ElementsAre(5, 1));
}

TEST(LoadPlan, keeps_every_rounding_of_a_chain_of_casts) {
  const Planned planned(SyntheticFile().tensor("a", Dtype::F32, {2}),
                        Transforms().cast("a", Dtype::BF16).cast("a", Dtype::BF16).cast("a", Dtype::F32));

  EXPECT_THAT(planned.state().targets[0].parts[0].casts, ElementsAre(Dtype::BF16));
  EXPECT_FALSE(planned.state().targets[0].straight);
  EXPECT_FALSE(planned.state().targets[0].cast_only);
}

TEST(LoadPlan, takes_a_tensor_without_elements_as_it_is) {
  const Planned planned(SyntheticFile()
                            .tensor("a", Dtype::U8, {2})
                            .tensor("z", Dtype::F32, {3, 0})
                            .tensor("b", Dtype::U8, {2}));

  EXPECT_THAT(planned.names(), ElementsAre("a", "z", "b"));
  EXPECT_EQ(planned.plan.targets()[1].size, 0u);
  EXPECT_THAT(planned.ranges(), ElementsAre("a.0@0: 0+2", "b.0@0: 2+2"));
}

TEST(LoadPlan, says_what_is_put_together_in_memory) {
  const SyntheticFile file = SyntheticFile().tensor("a", Dtype::F32, {2, 4}).tensor("b", Dtype::F32, {4});

  EXPECT_EQ(Planned(file).plan.staging_bytes(false), 0u);
  EXPECT_EQ(Planned(file, Transforms().cast("*", Dtype::F16)).plan.staging_bytes(false), 0u);
  EXPECT_EQ(Planned(file, Transforms().transpose("a")).plan.staging_bytes(false), 32u);
  EXPECT_EQ(Planned(file, Transforms().transpose("a")).plan.staging_bytes(true), 0u);
  EXPECT_EQ(Planned(file, Transforms().quantize("b")).plan.staging_bytes(true), 20u);
  EXPECT_EQ(Planned(file, Transforms().cast("b", Dtype::F16).quantize("b")).plan.staging_bytes(true), 12u);
}

TEST(LoadPlan, asks_to_defer_only_what_is_kept_whole_and_unchanged) {
  SyntheticFile file = SyntheticFile()
                           .tensor("cast", Dtype::F16, {2})
                           .tensor("experts.0.w", Dtype::U8, {2})
                           .tensor("experts.1.w", Dtype::U8, {2})
                           .tensor("filtered", Dtype::U8, {2})
                           .tensor("none", Dtype::U8, {0})
                           .tensor("renamed", Dtype::U8, {2})
                           .tensor("sliced", Dtype::U8, {2})
                           .tensor("turned", Dtype::U8, {2, 1});
  std::vector<std::string> asked;

  Planned planned(
      file, LoadRequest{.filter = {.exclude = {"filtered"}},
                        .rank = {.index = 1, .world = 2, .expert_parallel = true, .slices = {{"sliced"}}},
                        .transforms = Transforms()
                                          .cast("cast", Dtype::F32)
                                          .cast("renamed", Dtype::U8)
                                          .rename("renamed", "new")
                                          .transpose("turned"),
                        .defer = [&](const TensorInfo& tensor) {
                          asked.push_back(tensor.name);
                          return tensor.name == "new";
                        }});

  EXPECT_THAT(asked, ElementsAre("experts.1.w", "none", "new"));
  EXPECT_THAT(planned.names(), ElementsAre("cast", "experts.1.w", "none", "sliced", "turned"));
  ASSERT_EQ(planned.plan.deferred().size(), 1u);
  const DeferredTensor& deferred = planned.plan.deferred()[0];
  EXPECT_EQ(deferred.path, planned.file.path());
  EXPECT_EQ(deferred.tensor.name, "new");
  EXPECT_EQ(deferred.tensor.offset, planned.data + 10);
  EXPECT_EQ(deferred.tensor.size, 2u);
  EXPECT_EQ(planned.plan.read_bytes(), 4u + 2 + 1 + 2);
}

TEST(LoadPlan, of_a_hundred_thousand_tensors_has_a_range_for_each) {
  constexpr int kTensors = 100'000;
  std::string header = "{";
  for (int i = 0; i < kTensors; ++i) {
    header += fmt::format(R"({}"model.{}.w":{{"dtype":"U8","shape":[2,2],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", i, 4 * i, 4 * i + 4);
  }
  const SyntheticFile file = SyntheticFile().header(header + "}").append_data(std::string(4 * kTensors, 'x'));

  const Planned planned(file, Transforms().rename("model.*", "*").split("*.w", 1, {"*.l", "*.r"}));

  EXPECT_EQ(planned.plan.targets().size(), 2u * kTensors);
  EXPECT_EQ(planned.state().ranges.size(), 4u * kTensors);
  EXPECT_EQ(planned.plan.read_bytes(), 4u * kTensors);
}

}  // namespace
}  // namespace sluice
