#include "models/ltx2/text/tokenizer.h"

#include "models/ltx2/text/tokenizer_file.h"
#include "support/fixture.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::ltx2 {
namespace {

using sluice::test::ThrowsError;
using test::TokenizerFile;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<TokenId>;

std::filesystem::path fixture_folder() {
  return SLUICE_SOURCE_DIR "/tests/fixtures/tokenizer/encode";
}

std::vector<std::string> fixture_texts() {
  return nlohmann::json::parse(sluice::test::file_content(fixture_folder() / "cases.json"));
}

Ids row(const at::Tensor& ids, std::int64_t start, std::int64_t end) {
  at::Tensor slice = ids.slice(0, start, end).contiguous();
  return Ids(slice.data_ptr<int>(), slice.data_ptr<int>() + slice.numel());
}

TEST(TokenizerParity, gives_the_ids_of_the_reference) {
  sluice::test::Fixture fixture("tokenizer/encode");
  Tokenizer tokenizer = Tokenizer::load(fixture_folder() / "tokenizer.json");
  const at::Tensor& offsets = fixture.output("offsets");
  std::vector<std::string> texts = fixture_texts();
  ASSERT_EQ(offsets.numel(), static_cast<std::int64_t>(texts.size()) + 1);

  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto at = static_cast<std::int64_t>(i);
    Ids want = row(fixture.output("ids"), offsets[at].item<int>(), offsets[at + 1].item<int>());
    EXPECT_EQ(tokenizer.encode(texts[i]), want) << testing::PrintToString(texts[i]);
  }
}

TEST(TokenizerParity, cuts_where_the_reference_cuts) {
  sluice::test::Fixture fixture("tokenizer/encode");
  Tokenizer tokenizer = Tokenizer::load(fixture_folder() / "tokenizer.json");
  auto max_length = fixture.params().at("max_length").get<std::int64_t>();
  std::vector<std::string> texts = fixture_texts();

  for (std::size_t i = 0; i < texts.size(); ++i) {
    Encoded encoded = tokenizer.encode_truncated(texts[i], static_cast<std::size_t>(max_length));
    auto at = static_cast<std::int64_t>(i);
    auto padding = max_length - static_cast<std::int64_t>(encoded.ids.size());

    EXPECT_EQ(fixture.output("attention_mask")[at].sum().item<std::int64_t>(), max_length - padding);
    EXPECT_EQ(encoded.ids, row(fixture.output("input_ids")[at], padding, max_length));
    EXPECT_EQ(Ids(static_cast<std::size_t>(padding), tokenizer.pad_id()),
              row(fixture.output("input_ids")[at], 0, padding));
  }
}

TEST(Tokenizer, puts_bos_in_front_and_merges_by_rank) {
  Tokenizer tokenizer = TokenizerFile().load();

  EXPECT_THAT(tokenizer.encode("abc bc"), ElementsAre(2, 9, 7, 10));
}

TEST(Tokenizer, gives_bos_alone_for_an_empty_text_and_for_white_space) {
  Tokenizer tokenizer = TokenizerFile().load();

  EXPECT_THAT(tokenizer.encode(""), ElementsAre(2));
  EXPECT_THAT(tokenizer.encode(" \t\u3000\n"), ElementsAre(2));
}

TEST(Tokenizer, keeps_the_first_ids_and_tells_how_many_there_were) {
  Tokenizer tokenizer = TokenizerFile().load();

  Encoded cut = tokenizer.encode_truncated("a c c c", 3);

  EXPECT_THAT(cut.ids, ElementsAre(2, 4, 7));
  EXPECT_EQ(cut.tokens, 8u);
}

TEST(Tokenizer, cuts_the_text_and_not_what_the_template_puts_behind_it) {
  TokenizerFile file;
  file.json["post_processor"]["single"].push_back({{"SpecialToken", {{"id", "<eos>"}, {"type_id", 0}}}});
  Tokenizer tokenizer = file.load();

  EXPECT_THAT(tokenizer.encode("c"), ElementsAre(2, 6, 1));
  EXPECT_THAT(tokenizer.encode_truncated("cacaca", 4).ids, ElementsAre(2, 6, 4, 1));
}

TEST(Tokenizer, refuses_a_length_without_room_for_bos) {
  Tokenizer tokenizer = TokenizerFile().load();

  EXPECT_THAT([&] { tokenizer.encode_truncated("a", 0); },
              ThrowsError(ErrorKind::usage, HasSubstr("too few")));
}

TEST(Tokenizer, refuses_text_that_is_not_utf8_naming_the_byte) {
  Tokenizer tokenizer = TokenizerFile().load();

  EXPECT_THAT([&] { tokenizer.encode("  ab\xff"); },
              ThrowsError(ErrorKind::usage, AllOf(HasSubstr("byte 4"), HasSubstr("0xff"))));
}

TEST(Tokenizer, falls_back_to_bytes_where_all_bytes_are_tokens) {
  TokenizerFile file;
  file.json["model"]["vocab"]["<0xC3>"] = 13;
  file.json["model"]["vocab"]["<0xBC>"] = 14;
  Tokenizer tokenizer = file.load();

  EXPECT_THAT(tokenizer.encode("aü"), ElementsAre(2, 4, 13, 14));
  EXPECT_THAT(tokenizer.encode("aö"), ElementsAre(2, 4, 3));  // no <0xB6>
}

TEST(Tokenizer, fuses_neighbouring_unknowns_only_if_asked) {
  TokenizerFile file;
  EXPECT_THAT(file.load().encode("xyaz"), ElementsAre(2, 3, 4, 3));

  file.json["model"]["fuse_unk"] = false;
  EXPECT_THAT(file.load().encode("xyaz"), ElementsAre(2, 3, 3, 4, 3));

  file.json["model"]["unk_token"] = nullptr;
  EXPECT_THAT(file.load().encode("xyaz"), ElementsAre(2, 4));
}

TEST(Tokenizer, holds_an_unknown_back_behind_the_bytes_that_follow_as_the_reference_does) {
  TokenizerFile file;
  file.json["model"]["vocab"]["<0xC3>"] = 13;
  file.json["model"]["vocab"]["<0xBC>"] = 14;

  EXPECT_THAT(file.load().encode("xüya"), ElementsAre(2, 13, 14, 3, 4));
}

TEST(Tokenizer, takes_a_whole_word_at_once_only_with_ignore_merges) {
  TokenizerFile file;
  file.json["model"]["vocab"]["cab"] = 13;
  EXPECT_THAT(file.load().encode("cab"), ElementsAre(2, 6, 8));

  file.json["model"]["ignore_merges"] = true;
  EXPECT_THAT(file.load().encode("cab"), ElementsAre(2, 13));
}

TEST(Tokenizer, reads_merges_in_both_forms) {
  TokenizerFile file;
  file.json["model"]["merges"] = {"#version: 0.2", "a b", "ab c", "b c", "▁ a"};

  EXPECT_EQ(file.load().encode("abc bc ab"), TokenizerFile().load().encode("abc bc ab"));
}

TEST(Tokenizer, reads_sections_in_any_order) {
  TokenizerFile file;
  nlohmann::ordered_json turned;
  turned["model"]["merges"] = file.json["model"]["merges"];
  turned["model"]["vocab"] = file.json["model"]["vocab"];
  for (const auto& [key, value] : file.json["model"].items()) turned["model"][key] = value;
  for (const auto& [key, value] : file.json.items()) {
    if (key != "model") turned[key] = value;
  }

  EXPECT_THAT(Tokenizer::load(file.write_text(turned.dump())).encode("abc"), ElementsAre(2, 9));
}

TEST(Tokenizer, applies_the_normalizers_in_order_and_cuts_behind_the_delimiter) {
  TokenizerFile file;
  file.json["normalizer"] = {{"type", "Sequence"},
                             {"normalizers",
                              {{{"type", "Prepend"}, {"prepend", " "}},
                               {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}}}}};
  EXPECT_THAT(file.load().encode("a"), ElementsAre(2, 11));

  file.json["pre_tokenizer"] = {{"type", "Split"},
                                {"pattern", {{"String", "▁"}}},
                                {"behavior", "MergedWithPrevious"},
                                {"invert", false}};
  EXPECT_THAT(file.load().encode("a"), ElementsAre(2, 7, 4));
}

TEST(Tokenizer, knows_its_padding_and_its_size) {
  TokenizerFile file;
  file.add_token(13, "<image>");
  Tokenizer tokenizer = file.load();

  EXPECT_EQ(tokenizer.pad_id(), 0);
  EXPECT_EQ(tokenizer.vocabulary_size(), 14u);
}

TEST(Tokenizer, does_not_grow_slow_with_the_length_of_a_word) {
  Tokenizer tokenizer = TokenizerFile().load();

  EXPECT_EQ(tokenizer.encode(std::string(1'000'000, 'a')).size(), 1'000'001u);
}

}  // namespace
}  // namespace sluice::ltx2
