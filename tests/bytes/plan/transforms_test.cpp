// What rules make of names, dtypes and shapes, and what they refuse.  The bytes are in load_plan_test.
#include <sluice/load.h>

#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

namespace sluice {
namespace {

using test::SyntheticFile;
using test::ThrowsError;
using test::WrittenFile;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// "name DTYPE [shape]" of every target.
std::vector<std::string> targets_of(const SyntheticFile& file, const LoadRequest& request) {
  const WrittenFile written = file.write();
  const LoadPlan plan = plan_load(Checkpoint::open(written.path()), request);
  std::vector<std::string> targets;
  for (const TargetTensor& target : plan.targets())
    targets.push_back(
        fmt::format("{} {} {}", target.name, dtype_name(target.dtype), format_shape(target.shape)));
  return targets;
}

std::vector<std::string> targets_of(const SyntheticFile& file, const Transforms& transforms) {
  return targets_of(file, LoadRequest{.transforms = transforms});
}

// A request that is refused with this kind and a message that holds all of the parts.
void expect_refused(const SyntheticFile& file, const LoadRequest& request, ErrorKind kind,
                    const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_THAT([&] { targets_of(file, request); }, ThrowsError(kind, HasSubstr(part)));
}

void expect_refused(const SyntheticFile& file, const Transforms& transforms, ErrorKind kind,
                    const std::vector<std::string>& parts) {
  expect_refused(file, LoadRequest{.transforms = transforms}, kind, parts);
}

TEST(Rename, puts_what_the_stars_matched_into_the_new_name) {
  auto file = SyntheticFile().tensor("m.0.q", Dtype::U8, {1}).tensor("m.1.q", Dtype::U8, {2});

  EXPECT_THAT(targets_of(file, Transforms().rename("m.*.*", "x.*-*")),
              ElementsAre("x.0-q U8 [1]", "x.1-q U8 [2]"));
}

TEST(Rules, apply_in_order_each_to_the_result_of_those_before) {
  auto file = SyntheticFile().tensor("a", Dtype::F16, {4, 2});

  EXPECT_THAT(targets_of(file, Transforms()
                                   .rename("a", "b")
                                   .slice("b", 0, 1, 4)
                                   .transpose("b")
                                   .cast("b", Dtype::F32)
                                   .rename("b", "a")),
              ElementsAre("a F32 [2, 3]"));
}

TEST(Drop, leaves_tensors_out) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {1}).tensor("b", Dtype::U8, {1});

  EXPECT_THAT(targets_of(file, Transforms().drop("a")), ElementsAre("b U8 [1]"));
  EXPECT_THAT(targets_of(file, Transforms().drop("*")), IsEmpty());
}

TEST(Cast, applies_to_tensors_of_the_named_dtype_only) {
  auto file = SyntheticFile().tensor("a", Dtype::F16, {1}).tensor("b", Dtype::I32, {1});

  EXPECT_THAT(targets_of(file, Transforms().cast("*", Dtype::BF16, Dtype::F16)),
              ElementsAre("a BF16 [1]", "b I32 [1]"));
  EXPECT_THAT(targets_of(file, Transforms().cast("*", Dtype::F32, Dtype::F64)),
              ElementsAre("a F16 [1]", "b I32 [1]"));
}

TEST(Cast, that_cannot_be_is_refused) {
  auto file = SyntheticFile().tensor("a", Dtype::F16, {2}).tensor("b", Dtype::I32, {2});

  expect_refused(file, Transforms().cast("b", Dtype::F32), ErrorKind::mismatch,
                 {"cast 'b': 'b' [2] is I32, which cannot be cast to F32"});
  expect_refused(file, Transforms().cast("b", Dtype::I16), ErrorKind::mismatch, {"cannot be cast to I16"});
  expect_refused(file, Transforms().cast("x", Dtype::I16, Dtype::I32), ErrorKind::usage,
                 {"cast 'x': I32 cannot be cast to I16"});
  expect_refused(file, Transforms().cast("a", Dtype::C64), ErrorKind::usage,
                 {"cast 'a': nothing can be cast to C64"});
}

TEST(Slice, keeps_a_range_of_a_dimension) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {4, 6});

  EXPECT_THAT(targets_of(file, Transforms().slice("a", 1, 2, 5).slice("a", 0, 3, 3)),
              ElementsAre("a U8 [0, 3]"));
}

TEST(Slice, outside_of_a_tensor_is_refused) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {4}).tensor("s", Dtype::U8, {});

  expect_refused(file, Transforms().slice("a", 0, 2, 5), ErrorKind::mismatch,
                 {"slice 'a': 'a' [4] has no 2 to 5 in dimension 0"});
  expect_refused(file, Transforms().slice("*", 1, 0, 1), ErrorKind::mismatch,
                 {"'a' [4] has no dimension 1", "'s' [] has no dimension 1"});
  expect_refused(file, Transforms().slice("a", 0, 2, 1), ErrorKind::usage, {"slice 'a': 2 to 1 is no range"});
  expect_refused(file, Transforms().slice("a", 0, -1, 1), ErrorKind::usage, {"-1 to 1 is no range"});
}

TEST(Split, makes_equal_parts_or_parts_of_given_extents) {
  auto file = SyntheticFile().tensor("0.qkv.w", Dtype::U8, {6, 2});

  EXPECT_THAT(targets_of(file, Transforms().split("*.qkv.*", 0, {"*.q.*", "*.k.*", "*.v.*"})),
              ElementsAre("0.q.w U8 [2, 2]", "0.k.w U8 [2, 2]", "0.v.w U8 [2, 2]"));
  EXPECT_THAT(targets_of(file, Transforms().split("*.qkv.*", 0, {"q", "k", "v"}, {4, 0, 2})),
              UnorderedElementsAre("q U8 [4, 2]", "k U8 [0, 2]", "v U8 [2, 2]"));
}

TEST(Split, that_does_not_come_out_even_is_refused) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {4, 3});

  expect_refused(file, Transforms().split("a", 1, {"b", "c"}), ErrorKind::mismatch,
                 {"split 'a': 'a' [4, 3] cannot be split into 2 equal parts along dimension 1"});
  expect_refused(file, Transforms().split("a", 0, {"b", "c"}, {1, 2}), ErrorKind::mismatch,
                 {"'a' [4, 3] has 4 along dimension 0, the parts have 3 together"});
  expect_refused(file, Transforms().split("a", 0, {"b", "c"}, {INT64_MAX, INT64_MAX}), ErrorKind::mismatch,
                 {"'a' [4, 3] has less than what is asked for"});
  expect_refused(file, Transforms().split("a", 2, {"b"}), ErrorKind::mismatch, {"has no dimension 2"});
  expect_refused(file, Transforms().split("a", 0, {}), ErrorKind::usage, {"split 'a': it names no parts"});
  expect_refused(file, Transforms().split("a", 0, {"b"}, {1, 3}), ErrorKind::usage,
                 {"1 names for 2 extents"});
  expect_refused(file, Transforms().split("a", 0, {"b", "c"}, {5, -1}), ErrorKind::usage,
                 {"an extent is negative"});
}

TEST(Concatenate, joins_the_sets_that_agree_in_what_the_stars_stand_for) {
  auto file = SyntheticFile()
                  .tensor("0.k", Dtype::U8, {1, 3})
                  .tensor("0.q", Dtype::U8, {2, 3})
                  .tensor("1.k", Dtype::U8, {3, 3})
                  .tensor("1.q", Dtype::U8, {4, 3})
                  .tensor("other", Dtype::U8, {1});

  EXPECT_THAT(targets_of(file, Transforms().concatenate({"*.q", "*.k"}, 0, "*.qk")),
              ElementsAre("0.qk U8 [3, 3]", "1.qk U8 [7, 3]", "other U8 [1]"));
}

TEST(Concatenate, of_globs_without_stars_is_one_set_in_their_order) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {1}).tensor("b", Dtype::U8, {2});

  EXPECT_THAT(targets_of(file, Transforms().concatenate({"b", "a"}, 0, "ba")), ElementsAre("ba U8 [3]"));
}

TEST(Concatenate, of_a_set_that_is_not_whole_is_refused_naming_what_lacks) {
  auto file = SyntheticFile()
                  .tensor("0.q", Dtype::U8, {1})
                  .tensor("1.k", Dtype::U8, {1})
                  .tensor("1.q", Dtype::U8, {1});

  expect_refused(file, Transforms().concatenate({"*.q", "*.k"}, 0, "*.qk"), ErrorKind::mismatch,
                 {"concatenate '*.q', '*.k': '0.q' [1] has no partner that matches '*.k'"});
}

TEST(Concatenate, of_what_does_not_fit_together_is_refused) {
  auto file = SyntheticFile()
                  .tensor("a", Dtype::U8, {2, 3})
                  .tensor("b", Dtype::U8, {3, 2})
                  .tensor("c", Dtype::I8, {2, 3})
                  .tensor("d", Dtype::U8, {2});

  expect_refused(file, Transforms().concatenate({"a", "b"}, 0, "x"), ErrorKind::mismatch,
                 {"'a' [2, 3] does not fit 'b' [3, 2] along dimension 0"});
  expect_refused(file, Transforms().concatenate({"a", "c"}, 0, "x"), ErrorKind::mismatch,
                 {"'a' [2, 3] is U8, but 'c' [2, 3] is I8"});
  expect_refused(file, Transforms().concatenate({"a", "d"}, 0, "x"), ErrorKind::mismatch,
                 {"'a' [2, 3] does not fit 'd' [2]"});
  expect_refused(file, Transforms().concatenate({"d"}, 1, "x"), ErrorKind::mismatch,
                 {"'d' [2] has no dimension 1"});
}

TEST(Concatenate, that_uses_a_tensor_twice_or_two_for_one_place_is_refused) {
  auto file = SyntheticFile().tensor("a1", Dtype::U8, {1}).tensor("a2", Dtype::U8, {1});

  expect_refused(file, Transforms().concatenate({"a1", "a1"}, 0, "x"), ErrorKind::mismatch,
                 {"'a1' [1] matches more than one of the globs"});
  expect_refused(file, Transforms().concatenate({"a?"}, 0, "x"), ErrorKind::mismatch,
                 {"'a2' [1] stands in the same place as 'a1' [1]"});
}

TEST(Concatenate, that_can_never_be_is_a_usage_error) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {1});

  expect_refused(file, Transforms().concatenate({}, 0, "x"), ErrorKind::usage, {"it has no globs"});
  expect_refused(file, Transforms().concatenate({"a*", "b"}, 0, "x"), ErrorKind::usage,
                 {"concatenate 'a*', 'b': the globs differ in the number of their '*'"});
}

TEST(Transpose, swaps_two_dimensions) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {2, 3, 4});

  EXPECT_THAT(targets_of(file, Transforms().transpose("a", 0, 2)), ElementsAre("a U8 [4, 3, 2]"));
  expect_refused(file, Transforms().transpose("a", 0, 3), ErrorKind::mismatch,
                 {"transpose 'a': 'a' [2, 3, 4] has no dimension 3"});
}

TEST(Quantize, gives_values_followed_by_their_scale) {
  auto file = SyntheticFile().tensor("a", Dtype::BF16, {2}).tensor("b", Dtype::F32, {3, 2});

  EXPECT_THAT(targets_of(file, Transforms().quantize("*")),
              ElementsAre("a F8_E4M3 [2]", "a_scale F32 []", "b F8_E4M3 [3, 2]", "b_scale F32 []"));
}

TEST(Quantize, can_be_followed_by_renaming_alone) {
  auto file = SyntheticFile().tensor("a.weight", Dtype::BF16, {2});
  const Transforms quantized = Transforms().quantize("*");
  auto then = [&](auto add) {
    Transforms transforms = quantized;
    return add(transforms);
  };

  EXPECT_THAT(targets_of(file, then([](Transforms& t) { return t.rename("a.*", "b.*"); })),
              ElementsAre("b.weight F8_E4M3 [2]", "b.weight_scale F32 []"));
  EXPECT_THAT(targets_of(file, then([](Transforms& t) { return t.rename("*_scale", "*.scale"); })),
              ElementsAre("a.weight F8_E4M3 [2]", "a.weight.scale F32 []"));
  for (const Transforms& more : {then([](Transforms& t) { return t.drop("*"); }),
                                 then([](Transforms& t) { return t.cast("*", Dtype::F32); }),
                                 then([](Transforms& t) { return t.slice("*", 0, 0, 1); }),
                                 then([](Transforms& t) { return t.split("*", 0, {"*"}); }),
                                 then([](Transforms& t) { return t.concatenate({"*"}, 0, "*"); }),
                                 then([](Transforms& t) { return t.quantize("*"); })})
    expect_refused(file, more, ErrorKind::mismatch, {"'a.weight' [2] is quantized already"});
}

TEST(Quantize, is_for_wider_floating_point_numbers) {
  auto file = SyntheticFile().tensor("a", Dtype::I32, {2}).tensor("b", Dtype::F8_E5M2, {2});

  expect_refused(file, Transforms().quantize("*"), ErrorKind::mismatch,
                 {"'a' [2] is I32, which is not quantized", "'b' [2] is F8_E5M2, which is not quantized"});
  expect_refused(file, Transforms().quantize("a", Dtype::F4), ErrorKind::usage,
                 {"to F4: only F8_E4M3 can be made"});
}

TEST(Rules, that_match_nothing_are_refused_together) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {1});

  expect_refused(
      file, Transforms().rename("x.*", "*").drop("y").concatenate({"z"}, 0, "z"), ErrorKind::mismatch,
      {"3 problems", "rename 'x.*': matches no tensor", "drop 'y': matches", "concatenate 'z': matches"});
}

TEST(Rules, whose_new_names_have_more_stars_than_their_globs_are_refused) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {2});

  expect_refused(file, Transforms().rename("a", "*"), ErrorKind::usage,
                 {"rename 'a': the new name '*' has more '*' than the glob"});
  expect_refused(file, Transforms().split("a*", 0, {"*", "**"}), ErrorKind::usage, {"'**' has more"});
  expect_refused(file, Transforms().concatenate({"a"}, 0, "*"), ErrorKind::usage, {"'*' has more"});
  expect_refused(file, Transforms().rename("a", ""), ErrorKind::usage, {"the new name is empty"});
}

TEST(Rules, that_are_impossible_make_the_whole_a_usage_error_that_tells_the_rest_too) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {2});

  expect_refused(file, Transforms().slice("a", 3, 0, 1).slice("a", 0, 2, 1), ErrorKind::usage,
                 {"2 to 1 is no range", "has no dimension 3"});
}

TEST(Rules, that_give_two_tensors_one_name_are_refused) {
  auto file =
      SyntheticFile().tensor("a", Dtype::U8, {2}).tensor("b", Dtype::U8, {2}).tensor("c", Dtype::F32, {2});

  expect_refused(file, Transforms().rename("?", "x"), ErrorKind::mismatch,
                 {"3 tensors are to be called 'x'"});
  expect_refused(file, Transforms().rename("a", "c_scale").quantize("c"), ErrorKind::mismatch,
                 {"2 tensors are to be called 'c_scale'"});
}

TEST(Rules, that_leave_a_tensor_without_a_name_are_refused) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {2});

  expect_refused(file, Transforms().rename("a*", "*"), ErrorKind::mismatch,
                 {"a tensor is left without a name"});
}

TEST(Rules, with_many_problems_show_the_first_and_count_the_rest) {
  SyntheticFile file;
  for (int i = 0; i < 20; ++i) file.tensor(fmt::format("t{:02}", i), Dtype::U8, {2});

  expect_refused(file, Transforms().slice("*", 0, 0, 3), ErrorKind::mismatch,
                 {"20 problems", "'t07'", "and 12 more"});
  EXPECT_THAT([&] { targets_of(file, Transforms().slice("*", 0, 0, 3)); },
              ThrowsError(ErrorKind::mismatch, Not(HasSubstr("'t08'"))));
}

TEST(Ranks, keep_their_part_of_rows_or_columns) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {4, 6}).tensor("b", Dtype::U8, {4, 6});
  const Rank rank{.index = 1, .world = 2, .slices = {{"a", 0}, {"b", 1}}};

  EXPECT_THAT(targets_of(file, LoadRequest{.rank = rank}), ElementsAre("a U8 [2, 6]", "b U8 [4, 3]"));
}

TEST(Ranks, whose_slices_do_not_fit_are_refused) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {4, 6});
  auto refused = [&](const Rank& rank, ErrorKind kind, const std::string& part) {
    expect_refused(file, LoadRequest{.rank = rank}, kind, {part});
  };

  refused({.world = 3, .slices = {{"a", 0}}}, ErrorKind::mismatch,
          "rank slice 'a': 'a' [4, 6] does not divide among 3 ranks along dimension 0");
  refused({.world = 2, .slices = {{"a", 2}}}, ErrorKind::mismatch, "'a' [4, 6] has no dimension 2");
  refused({.world = 2, .slices = {{"b", 0}}}, ErrorKind::mismatch, "rank slice 'b': matches no tensor");
  refused({.index = 2, .world = 2}, ErrorKind::usage, "rank 2 of 2 does not exist");
  refused({.index = 0, .world = 0}, ErrorKind::usage, "rank 0 of 0 does not exist");
}

TEST(Ranks, without_experts_are_not_refused_for_rules_about_experts) {
  auto file = SyntheticFile().tensor("experts.0.w", Dtype::U8, {2}).tensor("other", Dtype::U8, {2});
  LoadRequest request{.rank = {.index = 1, .world = 2, .expert_parallel = true},
                      .transforms = Transforms().rename("experts.*", "e.*")};

  EXPECT_THAT(targets_of(file, request), ElementsAre("other U8 [2]"));

  request.rank.index = 0;
  EXPECT_THAT(targets_of(file, request), ElementsAre("e.0.w U8 [2]", "other U8 [2]"));
}

TEST(SmallElements, are_cut_where_bytes_end) {
  auto file = SyntheticFile().tensor("a", Dtype::F4, {4, 4});
  file.with_field("a", "data_offsets", "[0,8]").append_data("12345678");

  EXPECT_THAT(targets_of(file, Transforms().slice("a", 1, 2, 4)), ElementsAre("a F4 [4, 2]"));
  expect_refused(file, Transforms().slice("a", 1, 1, 3), ErrorKind::mismatch,
                 {"'a' [4, 2] is F4: a cut falls inside a byte"});
  expect_refused(file, Transforms().slice("a", 1, 0, 1), ErrorKind::mismatch, {"a cut falls inside a byte"});
  expect_refused(file, Transforms().transpose("a"), ErrorKind::mismatch,
                 {"'a' [4, 4] is F4: elements smaller than a byte cannot be transposed"});
  expect_refused(file, Transforms().slice("a", 0, 0, 1).transpose("a"), ErrorKind::mismatch,
                 {"'a' [4, 1] is F4: elements smaller than a byte cannot be transposed"});
  expect_refused(file, Transforms().cast("a", Dtype::F32), ErrorKind::mismatch, {"cannot be cast to F32"});
}

}  // namespace
}  // namespace sluice
