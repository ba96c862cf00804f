#include "bytes/plan/glob.h"

#include <sluice/transforms.h>

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <string>

namespace sluice::bytes {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(Glob, without_wildcards_matches_the_same_name_only) {
  EXPECT_TRUE(glob_matches("a.b", "a.b"));
  EXPECT_FALSE(glob_matches("a.b", "a.b.c"));
  EXPECT_FALSE(glob_matches("a.b", "xa.b"));
  EXPECT_FALSE(glob_matches("a.b", "a-b"));
  EXPECT_TRUE(glob_matches("", ""));
  EXPECT_FALSE(glob_matches("", "a"));
}

TEST(Glob, star_stands_for_any_text_also_none_and_across_dots) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("a.*", "a."));
  EXPECT_TRUE(glob_matches("a.*.weight", "a.b.c.weight"));
  EXPECT_FALSE(glob_matches("a.*.weight", "a.weight"));
  EXPECT_TRUE(glob_matches("*.weight", "x.weight.weight"));
  EXPECT_TRUE(glob_matches("**a**", "a"));
}

TEST(Glob, question_mark_stands_for_one_character) {
  EXPECT_TRUE(glob_matches("l?.w", "l1.w"));
  EXPECT_FALSE(glob_matches("l?.w", "l.w"));
  EXPECT_FALSE(glob_matches("l?.w", "l12.w"));
  EXPECT_TRUE(glob_matches("*?", "a"));
  EXPECT_FALSE(glob_matches("*?", ""));
}

TEST(Glob, tells_what_each_star_stood_for) {
  EXPECT_THAT(glob_capture("*.layers.*.q", "model.layers.3.q"), Optional(ElementsAre("model", "3")));
  EXPECT_THAT(glob_capture("a*", "a"), Optional(ElementsAre("")));
  EXPECT_THAT(glob_capture("a", "a"), Optional(IsEmpty()));
  EXPECT_THAT(glob_capture("a*", "b"), Eq(std::nullopt));
}

TEST(Glob, gives_the_least_to_the_first_stars_and_the_rest_to_the_last) {
  EXPECT_THAT(glob_capture("*.*", "a.b.c"), Optional(ElementsAre("a", "b.c")));
  EXPECT_THAT(glob_capture("*.w", "a.w.w"), Optional(ElementsAre("a.w")));
  EXPECT_THAT(glob_capture("**", "ab"), Optional(ElementsAre("", "ab")));
}

TEST(Glob, fills_the_stars_of_a_new_name_in_order) {
  EXPECT_EQ(fill_stars("x.*.y.*", {"1", "2"}), "x.1.y.2");
  EXPECT_EQ(fill_stars("x.*", {"1", "2"}), "x.1");
  EXPECT_EQ(fill_stars("x?", {}), "x?");
}

TEST(Glob, of_many_stars_against_a_long_name_does_not_explode) {
  std::string glob;
  for (int i = 0; i < 200; ++i) glob += "*a";

  EXPECT_FALSE(glob_matches(glob + "*b", std::string(20000, 'a')));
}

// Tries everything.
bool slow_match(std::string_view glob, std::string_view name) {
  if (glob.empty()) return name.empty();
  if (glob.front() == '*') {
    return slow_match(glob.substr(1), name) || (!name.empty() && slow_match(glob, name.substr(1)));
  }
  if (name.empty() || (glob.front() != '?' && glob.front() != name.front())) return false;
  return slow_match(glob.substr(1), name.substr(1));
}

TEST(Glob, agrees_with_a_matcher_that_tries_everything) {
  const auto text = [](std::string letters) {
    return rc::gen::resize(9, rc::gen::container<std::string>(rc::gen::elementOf(letters)));
  };
  EXPECT_TRUE(rc::check([&] {
    const std::string glob = *text("ab*?"), name = *text("ab");
    RC_ASSERT(glob_matches(glob, name) == slow_match(glob, name));
  }));
}

TEST(Glob, whose_stars_are_replaced_by_what_they_matched_is_the_name) {
  EXPECT_TRUE(rc::check([] {
    const auto name =
        *rc::gen::resize(12, rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab"))));
    const auto glob =
        *rc::gen::resize(6, rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab*"))));
    const auto captures = glob_capture(glob, name);
    RC_PRE(captures.has_value());
    RC_ASSERT(fill_stars(glob, *captures) == name);
  }));
}

}  // namespace
}  // namespace sluice::bytes
