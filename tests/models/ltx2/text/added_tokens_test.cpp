#include "models/ltx2/text/added_tokens.h"

#include "models/ltx2/text/tokenizer_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::ltx2 {
namespace {

using test::TokenizerFile;
using ::testing::ElementsAre;

// Splits with the tokens "Q" (id 1) and "QQ" (id 2), "Q" with the flags given; shows pieces as "text" or
// "text=id".
std::vector<std::string> split(std::string_view text, AddedToken q = {}) {
  q.id = 1;
  q.content = "Q";
  const std::string contents[] = {"Q", "QQ"};
  AddedTokenFinder finder({q, AddedToken{.id = 2, .content = "QQ"}}, contents);
  std::vector<std::string> shown;
  for (const Piece& piece : finder.split(text)) {
    shown.push_back(std::string(piece.text) + (piece.added ? "=" + std::to_string(*piece.added) : ""));
  }
  return shown;
}

TEST(AddedTokens, are_taken_leftmost_and_then_longest) {
  EXPECT_THAT(split("aQQQb"), ElementsAre("a", "QQ=2", "Q=1", "b"));
}

TEST(AddedTokens, leave_text_without_them_whole) {
  EXPECT_THAT(split("abc"), ElementsAre("abc"));
  EXPECT_THAT(split(""), ElementsAre());
}

TEST(AddedTokens, swallow_white_space_on_the_side_that_they_strip) {
  EXPECT_THAT(split("a \tQ\u3000b", {.lstrip = true}), ElementsAre("a", " \tQ=1", "\u3000b"));
  EXPECT_THAT(split("a \tQ\u3000 b", {.rstrip = true}), ElementsAre("a \t", "Q\u3000 =1", "b"));
  EXPECT_THAT(split("a\u200bQ", {.lstrip = true}), ElementsAre("a\u200b", "Q=1"));
}

TEST(AddedTokens, do_not_swallow_what_the_one_before_has) {
  EXPECT_THAT(split("Q  Q", {.lstrip = true, .rstrip = true}), ElementsAre("Q  =1", "Q=1"));
}

TEST(AddedTokens, of_a_single_word_touch_no_word_character) {
  AddedToken single{.single_word = true};

  EXPECT_THAT(split("a Q-", single), ElementsAre("a ", "Q=1", "-"));
  EXPECT_THAT(split("aQ", single), ElementsAre("aQ"));
  EXPECT_THAT(split("Qé", single), ElementsAre("Qé"));
  EXPECT_THAT(split("Q_", single), ElementsAre("Q_"));
  EXPECT_THAT(split("中Q", single), ElementsAre("中Q"));
  EXPECT_THAT(split("，Q½", single), ElementsAre("，", "Q=1", "½"));
}

TEST(AddedTokens, are_found_before_the_normalizer_unless_they_are_normalized) {
  TokenizerFile file;
  file.add_token(13, "▁▁");
  file.add_token(14, " b", {"normalized"});
  Tokenizer tokenizer = file.load();

  EXPECT_THAT(tokenizer.encode("c▁▁c"), ElementsAre(2, 6, 13, 6));
  EXPECT_THAT(tokenizer.encode("c  c"), ElementsAre(2, 6, 7, 7, 6));
  EXPECT_THAT(tokenizer.encode("c▁b b"), ElementsAre(2, 6, 14, 14));
}

TEST(AddedTokens, become_their_id_where_they_are_typed) {
  TokenizerFile file;
  file.add_token(2, "<bos>", {"special"});
  file.add_token(0, "<pad>", {"special"});
  Tokenizer tokenizer = file.load();

  EXPECT_THAT(tokenizer.encode("<bos>a<pad>"), ElementsAre(2, 2, 4, 0));
}

TEST(AddedTokens, may_be_repeated_word_for_word) {
  TokenizerFile file;
  file.add_token(13, "Q");
  file.add_token(13, "Q");

  EXPECT_THAT(file.load().encode("Q"), ElementsAre(2, 13));
}

}  // namespace
}  // namespace sluice::ltx2
