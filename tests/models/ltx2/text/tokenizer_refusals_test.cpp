#include "models/ltx2/text/tokenizer.h"

#include "models/ltx2/text/tokenizer_file.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"

#include <sluice/error.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::ltx2 {
namespace {

using sluice::test::ThrowsError;
using test::TokenizerFile;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Refusal {
  const char* name;
  std::function<void(nlohmann::json&)> change;
  const char* message;
};

void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.name;
}

class TokenizerRefuses : public testing::TestWithParam<Refusal> {};

TEST_P(TokenizerRefuses, by_name) {
  TokenizerFile file;
  GetParam().change(file.json);
  std::filesystem::path path = file.write();

  EXPECT_THAT(
      [&] { Tokenizer::load(path); },
      ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr(path.string()), HasSubstr(GetParam().message))));
}

nlohmann::json split(const char* behavior, bool invert, const char* kind) {
  return {{"type", "Split"}, {"pattern", {{kind, " "}}}, {"behavior", behavior}, {"invert", invert}};
}

nlohmann::json added(const char* content, int id) {
  return {{"id", id},        {"content", content}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", true}, {"special", false}};
}

using Json = nlohmann::json;
const Refusal kRefusals[] = {
    {"model_type", [](Json& j) { j["model"]["type"] = "Unigram"; }, "'Unigram'"},
    {"dropout", [](Json& j) { j["model"]["dropout"] = 0.1; }, "dropout"},
    {"prefix", [](Json& j) { j["model"]["continuing_subword_prefix"] = "##"; }, "continuing_subword_prefix"},
    {"suffix", [](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }, "end_of_word_suffix"},
    {"model_key", [](Json& j) { j["model"]["scores"] = 1; }, "'scores'"},
    {"root_key", [](Json& j) { j["extra"] = 1; }, "'extra'"},
    {"normalizer",
     [](Json& j) {
       j["normalizer"] = {{"type", "NFKC"}};
     },
     "'NFKC'"},
    {"nested_normalizer",
     [](Json& j) {
       j["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}};
     },
     "'Lowercase'"},
    {"normalizer_regex",
     [](Json& j) {
       j["normalizer"]["pattern"] = {{"Regex", "a+"}};
     },
     "Regex"},
    {"pre_tokenizer",
     [](Json& j) {
       j["pre_tokenizer"] = {{"type", "ByteLevel"}};
     },
     "'ByteLevel'"},
    {"split_behavior", [](Json& j) { j["pre_tokenizer"] = split("Isolated", false, "String"); },
     "'Isolated'"},
    {"split_invert", [](Json& j) { j["pre_tokenizer"] = split("MergedWithPrevious", true, "String"); },
     "invert"},
    {"split_regex", [](Json& j) { j["pre_tokenizer"] = split("MergedWithPrevious", false, "Regex"); },
     "Regex"},
    {"post_processor",
     [](Json& j) {
       j["post_processor"] = {{"type", "BertProcessing"}};
     },
     "'BertProcessing'"},
    {"no_post_processor", [](Json& j) { j["post_processor"] = nullptr; }, "post_processor"},
    {"template_without_text", [](Json& j) { j["post_processor"]["single"].erase(1); }, "template"},
    {"template_with_pair", [](Json& j) { j["post_processor"]["single"][1]["Sequence"]["id"] = "B"; },
     "template item"},
    {"template_id", [](Json& j) { j["post_processor"]["special_tokens"]["<bos>"]["ids"] = {99}; }, "99"},
    {"template_token", [](Json& j) { j["post_processor"]["special_tokens"].erase("<bos>"); }, "<bos>"},
    {"no_model", [](Json& j) { j.erase("model"); }, "model"},
    {"no_merges", [](Json& j) { j["model"].erase("merges"); }, "merges"},
    {"no_vocabulary", [](Json& j) { j["model"].erase("vocab"); }, "vocab"},
    {"no_pad", [](Json& j) { j["model"]["vocab"].erase("<pad>"); }, "<pad>"},
    {"unk_unknown", [](Json& j) { j["model"]["unk_token"] = "<what>"; }, "'<what>'"},
    {"merge_of_unknown",
     [](Json& j) {
       j["model"]["merges"][2] = {"a", "z"};
     },
     "merge 2"},
    {"merge_to_unknown",
     [](Json& j) {
       j["model"]["merges"][1] = {"c", "a"};
     },
     "'ca'"},
    {"merge_of_three",
     [](Json& j) {
       j["model"]["merges"][1] = {"a", "b", "c"};
     },
     "3 parts"},
    {"merge_line", [](Json& j) { j["model"]["merges"] = {"a b c"}; }, "'a b c'"},
    {"merge_forms", [](Json& j) { j["model"]["merges"][1] = "ab c"; }, "both forms"},
    {"negative_id", [](Json& j) { j["model"]["vocab"]["a"] = -1; }, "-1"},
    {"great_id", [](Json& j) { j["model"]["vocab"]["a"] = 1ull << 40; }, "1099511627776"},
    {"added_id", [](Json& j) { j["added_tokens"] = {added("a", 5)}; }, "'a' has id 5, but it should be 4"},
    {"added_gap", [](Json& j) { j["added_tokens"] = {added("<new>", 20)}; }, "should be 13"},
    {"added_empty", [](Json& j) { j["added_tokens"] = {added("", 13)}; }, "no text"},
    {"added_twice",
     [](Json& j) {
       j["added_tokens"] = {added("Q", 13), added("Q", 14)};
     },
     "twice"},
    {"added_same",
     [](Json& j) {
       j["added_tokens"] = {added(" Q", 13), added("▁Q", 14)};
     },
     "same text"},
    {"added_key",
     [](Json& j) {
       j["added_tokens"] = {added("Q", 13)};
       j["added_tokens"][0]["odd"] = 1;
     },
     "'odd'"},
    {"added_lacks",
     [](Json& j) {
       j["added_tokens"] = {{{"id", 13}, {"content", "Q"}}};
     },
     "lacks 'single_word'"},
};

INSTANTIATE_TEST_SUITE_P(Files, TokenizerRefuses, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Tokenizer, refuses_a_token_that_is_listed_twice) {
  TokenizerFile file;
  std::string text = file.json.dump();
  text.replace(text.find("\"abc\":"), 6, "\"bc\":  ");

  EXPECT_THAT([&] { Tokenizer::load(file.write_text(text)); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("'bc' twice")));
}

TEST(Tokenizer, tells_where_a_missing_file_belongs) {
  sluice::test::TemporaryFolder folder;

  EXPECT_THAT([&] { Tokenizer::load(folder / "tokenizer.json"); },
              ThrowsError(ErrorKind::bad_input, HasSubstr((folder / "tokenizer.json").string()),
                          HasSubstr("text encoder's folder")));
}

TEST(Tokenizer, tells_what_a_file_really_is) {
  TokenizerFile file;
  const std::pair<const char*, const char*> impostors[] = {
      {"", "empty"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 33384568\n", "Git LFS"},
      {"<!DOCTYPE html><html></html>", "web page"},
      {"\x1f\x8b\x08", "gzip"},
  };

  for (auto [content, what] : impostors) {
    auto path = file.write_text(content);
    EXPECT_THAT([&] { Tokenizer::load(path); }, ThrowsError(ErrorKind::bad_input, HasSubstr(what)));
  }
}

TEST(Tokenizer, refuses_a_file_that_is_cut_short_anywhere) {
  TokenizerFile file;
  std::string whole = file.json.dump();

  for (std::size_t missing = 1; missing < whole.size(); missing += missing < 20 ? 1 : 7) {
    auto path = file.write_text(std::string_view(whole).substr(0, whole.size() - missing));
    EXPECT_THAT([&] { Tokenizer::load(path); },
                ThrowsError(ErrorKind::bad_input, HasSubstr("tokenizer.json")))
        << missing << " of " << whole.size() << " bytes missing";
  }
}

// Text in which some bytes are changed, taken out or doubled.
std::string damaged(std::string text, std::mt19937& random) {
  for (int change = 0; change < 3; ++change) {
    std::size_t at = random() % text.size();
    switch (random() % 3) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + random() % 8);
        break;
      default:
        text.insert(at, text.substr(random() % text.size(), random() % 30));
    }
  }
  return text;
}

TEST(Tokenizer, answers_a_damaged_file_with_a_tokenizer_or_an_error_and_nothing_else) {
  TokenizerFile file;
  file.add_token(13, "Q", {"lstrip", "rstrip", "single_word"});
  std::string whole = file.json.dump();
  auto seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);

  for (int round = 0; round < 300; ++round) {
    auto path = file.write_text(damaged(whole, random));
    try {
      EXPECT_LE(Tokenizer::load(path).encode_truncated("abc Q \u3000é🎬", 10).ids.size(), 10u);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input) << error.what();
    }
  }
}

TEST(Tokenizer, refuses_what_is_json_but_no_tokenizer) {
  TokenizerFile file;

  for (std::string_view text :
       {"[]", "12", "\"a\"", "{}", "{\"model\": 1}", "{\"model\": {\"vocab\": []}}"}) {
    EXPECT_THAT([&] { Tokenizer::load(file.write_text(text)); },
                ThrowsError(ErrorKind::bad_input, testing::_))
        << text;
  }
  EXPECT_THAT([&] { Tokenizer::load(file.write_text(file.json.dump() + " {}")); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("follows")));
}

}  // namespace
}  // namespace sluice::ltx2
