#pragma once
// Builds small tokenizer.json files, right ones and wrong ones: start from one like Gemma's and change its
// JSON.
//
//   TokenizerFile file;
//   file.json["model"]["fuse_unk"] = false;
//   Tokenizer tokenizer = file.load();

#include "models/ltx2/text/tokenizer.h"

#include "support/temporary_folder.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::ltx2::test {

class TokenizerFile {
 public:
  // Ids: <pad> 0, <eos> 1, <bos> 2, <unk> 3, then what tokens() lists from 4 on.  Merges: a+b, ab+c, b+c,
  // ▁+a.
  TokenizerFile() {
    auto& model = json["model"];
    model = {{"type", "BPE"},          {"dropout", nullptr},
             {"unk_token", "<unk>"},   {"continuing_subword_prefix", nullptr},
             {"fuse_unk", true},       {"byte_fallback", true},
             {"ignore_merges", false}, {"end_of_word_suffix", nullptr}};
    int id = 0;
    for (const char* token :
         {"<pad>", "<eos>", "<bos>", "<unk>", "a", "b", "c", "▁", "ab", "abc", "bc", "▁a", "é"}) {
      model["vocab"][token] = id++;
    }
    model["merges"] = nlohmann::json::array({{"a", "b"}, {"ab", "c"}, {"b", "c"}, {"▁", "a"}});
    json["version"] = "1.0";
    json["truncation"] = json["padding"] = json["decoder"] = json["pre_tokenizer"] = nullptr;
    json["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}};
    json["added_tokens"] = nlohmann::json::array();
    json["post_processor"] = {{"type", "TemplateProcessing"},
                              {"single",
                               {{{"SpecialToken", {{"id", "<bos>"}, {"type_id", 0}}}},
                                {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
                              {"pair", nlohmann::json::array()},
                              {"special_tokens",
                               {{"<bos>", {{"id", "<bos>"}, {"ids", {2}}, {"tokens", {"<bos>"}}}},
                                {"<eos>", {{"id", "<eos>"}, {"ids", {1}}, {"tokens", {"<eos>"}}}}}}};
  }

  TokenId id(std::string_view token) const { return json["model"]["vocab"].at(std::string(token)); }

  // All flags off but those named.
  void add_token(TokenId id, std::string_view content, const std::vector<std::string>& flags = {}) {
    nlohmann::json token = {{"id", id}, {"content", content}};
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized", "special"}) token[flag] = false;
    for (const std::string& flag : flags) token[flag] = true;
    json["added_tokens"].push_back(token);
  }

  std::filesystem::path write() const { return write_text(json.dump(1)); }
  std::filesystem::path write_text(std::string_view text) const {
    sluice::test::write_file(folder_ / "tokenizer.json", text);
    return folder_ / "tokenizer.json";
  }
  Tokenizer load() const { return Tokenizer::load(write()); }

  nlohmann::json json;

 private:
  sluice::test::TemporaryFolder folder_;
};

}  // namespace sluice::ltx2::test
