#pragma once
// The steps that tokenizer.json takes on text before byte pair encoding: the normalizer rewrites a piece, the
// pre-tokenizer cuts it.  Pure functions on valid UTF-8.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice::ltx2 {

struct Replace {        // every occurrence of `pattern`, from left to right
  std::string pattern;  // not empty
  std::string content;
};

struct Prepend {  // in front of text that is not empty
  std::string text;
};

using Normalizer = std::vector<std::variant<Replace, Prepend>>;  // one after the other

std::string normalize(const Normalizer& normalizer, std::string text);

// Behind each occurrence of a delimiter the text is cut ("merged_with_previous").
struct PreTokenizer {
  std::string delimiter;  // empty: the text stays whole
};

std::vector<std::string_view> pre_tokenize(const PreTokenizer& pre_tokenizer, std::string_view text);

}  // namespace sluice::ltx2
