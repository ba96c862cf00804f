#include "base/text.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice {
namespace {

TEST(InQuotes, leaves_names_of_any_script_as_they_are) {
  EXPECT_EQ(in_quotes("blocks.0.attn.to_q.weight"), "'blocks.0.attn.to_q.weight'");
  EXPECT_EQ(in_quotes("名前 é 🎬"), "'名前 é 🎬'");
}

TEST(InQuotes, disarms_what_could_disturb_a_terminal) {
  EXPECT_EQ(in_quotes(std::string_view("a\0b", 3)), "'a\\x00b'");
  EXPECT_EQ(in_quotes("\x1b[31m\n"), "'\\x1b[31m\\x0a'");
  EXPECT_EQ(in_quotes("\xc2\x9b"), "'\\xc2\\x9b'");  // the one-byte form of ESC [
}

TEST(InQuotes, shows_bytes_that_are_no_utf8_as_numbers) {
  EXPECT_EQ(in_quotes("a\xff"), "'a\\xff'");
  EXPECT_EQ(in_quotes("\xe5\x90"), "'\\xe5\\x90'");  // cut short
  EXPECT_EQ(in_quotes("\xc0\xaf"), "'\\xc0\\xaf'");  // overlong
}

TEST(InQuotes, cuts_long_names) {
  std::string shown = in_quotes(std::string(100'000, 'x'));

  EXPECT_EQ(shown, "'" + std::string(200, 'x') + "…'");
}

TEST(Printable, is_the_whole_text_without_quotes) {
  EXPECT_EQ(printable(std::string(1000, 'x')), std::string(1000, 'x'));
  EXPECT_EQ(printable("é\x1b[2J\x7f\xc2\x9b\xff"), "é\\x1b[2J\\x7f\\xc2\\x9b\\xff");
}

TEST(EscapeControls, leaves_json_the_same_but_safe_to_show) {
  EXPECT_EQ(escape_controls("{\"é\": \"\x7f\xc2\x9b\xc2\xa0\"}"), "{\"é\": \"\\u007f\\u009b\xc2\xa0\"}");
}

TEST(ListFirst, counts_what_it_leaves_out) {
  std::vector<std::string> items = {"a", "b", "c", "d"};

  EXPECT_EQ(list_first(items, 4), "a, b, c, d");
  EXPECT_EQ(list_first(items, 3), "a, b, c and 1 more");
  EXPECT_EQ(list_first(items, 2, "\n  "), "a\n  b\n  and 2 more");
}

}  // namespace
}  // namespace sluice
