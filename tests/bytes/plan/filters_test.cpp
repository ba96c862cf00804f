#include "bytes/plan/filters.h"

#include "support/throws_error.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace sluice::bytes {
namespace {

using test::ThrowsError;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<TensorInfo> tensors(const std::vector<std::string>& names) {
  std::vector<TensorInfo> tensors;
  for (const std::string& name : names) tensors.push_back({.name = name});
  return tensors;
}

std::vector<std::string> names_of(const std::vector<const TensorInfo*>& kept) {
  std::vector<std::string> names;
  for (const TensorInfo* tensor : kept) names.push_back(tensor->name);
  return names;
}

TEST(Filter, that_is_empty_wants_everything) {
  EXPECT_TRUE(wanted_by({}, "visual.blocks.0.mtp.input_scale"));
}

TEST(Filter, wants_what_an_include_glob_matches_and_no_exclude_glob_does) {
  const TensorFilter filter{.include = {"a.*", "b.*"}, .exclude = {"*.bias"}};

  EXPECT_TRUE(wanted_by(filter, "a.weight"));
  EXPECT_TRUE(wanted_by(filter, "b.weight"));
  EXPECT_FALSE(wanted_by(filter, "b.bias"));
  EXPECT_FALSE(wanted_by(filter, "c.weight"));
}

TEST(Filter, skips_vision_towers_by_whole_prefixes) {
  const TensorFilter filter{.skip_vision = true};

  EXPECT_FALSE(wanted_by(filter, "model.visual.blocks.0.weight"));
  EXPECT_FALSE(wanted_by(filter, "model.vision_tower.weight"));
  EXPECT_FALSE(wanted_by(filter, "visual.patch_embed.weight"));
  EXPECT_TRUE(wanted_by(filter, "mlp.revision.weight"));
  EXPECT_TRUE(wanted_by(filter, "model.layers.0.visual.weight"));
  EXPECT_TRUE(wanted_by(filter, "model.visuals"));
}

TEST(Filter, skips_layers_that_predict_further_tokens) {
  const TensorFilter filter{.skip_mtp = true};

  EXPECT_FALSE(wanted_by(filter, "mtp.layers.0.weight"));
  EXPECT_FALSE(wanted_by(filter, "model.mtp.layers.0.weight"));
  EXPECT_TRUE(wanted_by(filter, "model.smtp.weight"));
  EXPECT_TRUE(wanted_by(filter, "model.mtp_head.weight"));
}

TEST(Filter, skips_input_scales_by_the_end_of_the_name) {
  const TensorFilter filter{.skip_input_scales = true};

  EXPECT_FALSE(wanted_by(filter, "a.input_scale"));
  EXPECT_TRUE(wanted_by(filter, "a.input_scale.weight"));
  EXPECT_TRUE(wanted_by(filter, "a.weight_scale"));
}

TEST(Filter, keeps_the_order_of_the_tensors) {
  const auto all = tensors({"a", "b", "c", "d"});
  PlanProblems problems;

  EXPECT_THAT(names_of(filter_tensors(all, {.include = {"d", "b", "a"}, .exclude = {"b"}}, problems)),
              ElementsAre("a", "d"));
  EXPECT_TRUE(problems.empty());
}

TEST(Filter, with_include_globs_that_match_nothing_is_refused_naming_each) {
  const auto all = tensors({"a"});
  PlanProblems problems;

  filter_tensors(all, {.include = {"a", "x*", "y"}}, problems);

  EXPECT_THAT(
      [&] { problems.throw_if_any("m.safetensors"); },
      ThrowsError(ErrorKind::mismatch, AllOf(HasSubstr("m.safetensors: 2 problems"), HasSubstr("'x*'"),
                                             HasSubstr("'y'"), Not(HasSubstr("'a'")))));
}

TEST(Filter, that_leaves_nothing_is_refused) {
  const auto all = tensors({"a", "b"});
  PlanProblems problems;

  EXPECT_THAT(filter_tensors(all, {.exclude = {"*"}}, problems), IsEmpty());

  EXPECT_THAT([&] { problems.throw_if_any("m.safetensors"); },
              ThrowsError(ErrorKind::mismatch, HasSubstr("leaves none of 2 tensors")));
}

// What the rank keeps of these names.
std::vector<std::string> kept_by(unsigned index, unsigned world, const std::vector<std::string>& names) {
  const auto all = tensors(names);
  std::vector<const TensorInfo*> kept;
  for (const TensorInfo& tensor : all) kept.push_back(&tensor);
  drop_foreign_experts(kept, all, {.index = index, .world = world, .expert_parallel = true});
  return names_of(kept);
}

TEST(Experts, stay_with_one_rank_in_contiguous_ranges_of_which_the_first_are_longer) {
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) names.push_back("experts." + std::to_string(i) + ".w");

  EXPECT_THAT(kept_by(0, 3, names), ElementsAre("experts.0.w", "experts.1.w"));
  EXPECT_THAT(kept_by(1, 3, names), ElementsAre("experts.2.w", "experts.3.w"));
  EXPECT_THAT(kept_by(2, 3, names), ElementsAre("experts.4.w"));
}

TEST(Experts, are_counted_for_each_prefix_by_number_and_not_by_text) {
  std::vector<std::string> names = {"a.experts.0.w", "a.experts.0.b", "a.experts.1.w", "b.experts.2.w",
                                    "b.experts.10.w"};

  EXPECT_THAT(kept_by(0, 2, names), ElementsAre("a.experts.0.w", "a.experts.0.b", "b.experts.2.w"));
  EXPECT_THAT(kept_by(1, 2, names), ElementsAre("a.experts.1.w", "b.experts.10.w"));
}

TEST(Experts, are_only_whole_parts_of_a_name) {
  std::vector<std::string> names = {"experts.gate", "shared_experts.1.w", "experts.1x.w",
                                    "experts.1",    "experts..w",         "experts.99999999999999999999.w"};

  EXPECT_THAT(kept_by(1, 2, names), ::testing::ElementsAreArray(names));
}

TEST(Experts, are_found_behind_a_part_that_only_looks_like_them) {
  EXPECT_THAT(kept_by(0, 2, {"shared_experts.x.experts.0.w", "shared_experts.x.experts.1.w"}),
              ElementsAre("shared_experts.x.experts.0.w"));
}

TEST(Experts, that_are_fewer_than_ranks_leave_some_ranks_without_which_is_told) {
  const auto all = tensors({"experts.0.w", "other"});
  std::vector<const TensorInfo*> kept = {&all[0], &all[1]};

  EXPECT_TRUE(drop_foreign_experts(kept, all, {.index = 1, .world = 2, .expert_parallel = true}));

  EXPECT_THAT(names_of(kept), ElementsAre("other"));
}

TEST(Experts, are_counted_in_the_whole_checkpoint_and_not_in_what_a_filter_left) {
  const auto all = tensors({"experts.0.w", "experts.1.w", "experts.2.w", "experts.3.w"});
  std::vector<const TensorInfo*> kept = {&all[0], &all[1]};

  EXPECT_FALSE(drop_foreign_experts(kept, all, {.index = 0, .world = 2, .expert_parallel = true}));

  EXPECT_THAT(names_of(kept), ElementsAre("experts.0.w", "experts.1.w"));
}

}  // namespace
}  // namespace sluice::bytes
