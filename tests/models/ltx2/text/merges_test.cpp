#include "models/ltx2/text/merges.h"

#include "models/ltx2/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace sluice::ltx2 {
namespace {

using ::testing::ElementsAre;

// The three letters a, b, c and random tokens that are made of two earlier ones.
struct RandomMerges {
  explicit RandomMerges(std::mt19937& random) : tokens({"a", "b", "c"}) {
    for (int i = 0; i < 30; ++i) {
      std::string left = pick(random), right = pick(random);
      pairs.emplace_back(left, right);
      if (std::ranges::find(tokens, left + right) == tokens.end()) tokens.push_back(left + right);
    }
    std::ranges::shuffle(pairs, random);
  }

  std::string pick(std::mt19937& random) { return tokens[random() % tokens.size()]; }
  Vocabulary vocabulary() const {
    std::vector<VocabularyEntry> entries;
    for (const std::string& token : tokens) entries.push_back({token, static_cast<TokenId>(entries.size())});
    return Vocabulary(entries);
  }
  MergeTable table() const {
    std::vector<MergeEntry> entries;
    for (const auto& [left, right] : pairs) entries.push_back({left, right});
    return MergeTable(entries, vocabulary());
  }

  std::vector<std::string> tokens;
  std::vector<std::pair<std::string, std::string>> pairs;
};

TEST(MergeSymbols, equals_the_search_of_the_whole_row) {
  auto seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    MergeTable table = RandomMerges(random).table();
    std::vector<TokenId> fast(random() % 200);
    for (TokenId& symbol : fast) symbol = static_cast<TokenId>(random() % 3);
    std::vector<TokenId> plain = fast;

    merge_symbols(table, fast);
    reference::merge_symbols(table, plain);

    ASSERT_EQ(fast, plain);
  }
}

TEST(MergeSymbols, takes_the_leftmost_of_equal_ranks) {
  const VocabularyEntry tokens[] = {{"a", 0}, {"aa", 1}};
  const MergeEntry merges[] = {{"a", "a"}};
  std::vector<TokenId> symbols = {0, 0, 0};

  merge_symbols(MergeTable(merges, Vocabulary(tokens)), symbols);

  EXPECT_THAT(symbols, ElementsAre(1, 0));
}

TEST(MergeSymbols, takes_the_lower_rank_before_the_one_further_left) {
  const VocabularyEntry tokens[] = {{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"bc", 4}};
  const MergeEntry merges[] = {{"b", "c"}, {"a", "b"}};
  std::vector<TokenId> symbols = {0, 1, 2, 0, 1};

  merge_symbols(MergeTable(merges, Vocabulary(tokens)), symbols);

  EXPECT_THAT(symbols, ElementsAre(0, 4, 3));
}

TEST(MergeSymbols, leaves_an_empty_row_empty) {
  std::vector<TokenId> symbols;

  merge_symbols(MergeTable({}, Vocabulary({})), symbols);

  EXPECT_TRUE(symbols.empty());
}

TEST(MergeTable, lets_the_last_of_equal_lines_count) {
  const VocabularyEntry tokens[] = {{"a", 0}, {"aa", 1}, {"aaa", 2}};
  const MergeEntry merges[] = {{"a", "a"}, {"aa", "a"}, {"a", "a"}};

  MergeTable table(merges, Vocabulary(tokens));

  EXPECT_EQ(table.find(0, 0)->rank, 2u);
  EXPECT_EQ(table.find(1, 0)->merged, 2);
  EXPECT_EQ(table.find(0, 1), nullptr);
}

TEST(Vocabulary, finds_many_as_it_finds_one) {
  std::vector<std::string> texts;
  std::vector<VocabularyEntry> entries;
  for (int i = 0; i < 1000; ++i) texts.push_back(std::to_string(i * 7919));
  for (std::size_t i = 0; i < texts.size(); i += 2) entries.push_back({texts[i], static_cast<TokenId>(i)});
  Vocabulary vocabulary(entries);
  std::vector<std::string_view> wanted(texts.begin(), texts.end());
  std::vector<TokenId> ids(wanted.size());

  vocabulary.find_all(wanted, ids);

  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(ids[i], vocabulary.find(wanted[i]).value_or(Vocabulary::kUnknown));
  }
  EXPECT_EQ(ids[500], 500);
  EXPECT_EQ(ids[501], Vocabulary::kUnknown);
}

}  // namespace
}  // namespace sluice::ltx2
