#include "models/ltx2/text/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice::ltx2 {
namespace {

using namespace std::string_view_literals;

TEST(Utf8, accepts_the_first_and_last_code_point_of_each_length) {
  EXPECT_EQ(find_invalid_utf8("\0\x7f\u0080\u07ff\u0800\xed\x9f\xbf\ue000\uffff\U00010000\U0010ffff"sv),
            std::nullopt);
}

TEST(Utf8, names_the_first_byte_that_does_not_belong) {
  EXPECT_EQ(find_invalid_utf8("ab\x80"), 2u);             // a continuation alone
  EXPECT_EQ(find_invalid_utf8("é\xc3"), 2u);              // cut short
  EXPECT_EQ(find_invalid_utf8("\xe4\xb8 "), 0u);          // cut short by a space
  EXPECT_EQ(find_invalid_utf8("a\xc0\xaf"), 1u);          // overlong, two bytes
  EXPECT_EQ(find_invalid_utf8("a\xe0\x9f\xbf"), 1u);      // overlong, three bytes
  EXPECT_EQ(find_invalid_utf8("a\xf0\x8f\xbf\xbf"), 1u);  // overlong, four bytes
  EXPECT_EQ(find_invalid_utf8("a\xed\xa0\x80"), 1u);      // a surrogate
  EXPECT_EQ(find_invalid_utf8("a\xf4\x90\x80\x80"), 1u);  // above U+10FFFF
  EXPECT_EQ(find_invalid_utf8("a\xff"), 1u);
}

TEST(Utf8, reads_code_points_from_both_ends) {
  EXPECT_EQ(first_code_point("🎬é").value, U'🎬');
  EXPECT_EQ(first_code_point("🎬é").length, 4u);
  EXPECT_EQ(last_code_point("a中").value, U'中');
  EXPECT_EQ(last_code_point("中a").length, 1u);
}

TEST(Strip, takes_away_what_pythons_strip_does_and_nothing_else) {
  constexpr std::string_view kSpaces[] = {"\t",     "\n",     "\v",     "\f",     "\r",     "\x1c",
                                          "\x1d",   "\x1e",   "\x1f",   " ",      "\u0085", "\u00a0",
                                          "\u1680", "\u2000", "\u2005", "\u200a", "\u2028", "\u2029",
                                          "\u202f", "\u205f", "\u3000"};
  constexpr std::string_view kOthers[] = {"\u200b", "\ufeff", "\u180e", "\u2060",
                                          "\x1b",   "\x7f",   "\u0084", "\u200d"};

  for (std::string_view space : kSpaces)
    EXPECT_EQ(strip(std::string(space) + "a b" + std::string(space)), "a b");
  for (std::string_view other : kOthers) EXPECT_EQ(strip(other), other);
}

}  // namespace
}  // namespace sluice::ltx2
