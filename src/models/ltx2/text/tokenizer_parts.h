#pragma once
// The small sections of tokenizer.json, read from their JSON.  What a section asks for and this tokenizer
// does not do is refused by name (Error bad_input), whatever the text would be: skipping it would give other
// ids without a word.

#include "models/ltx2/text/normalizer.h"
#include "models/ltx2/text/vocabulary.h"

#include <nlohmann/json_fwd.hpp>

#include <vector>

namespace sluice::ltx2 {

// The ids that stand around the text, from the post_processor "TemplateProcessing": `<bos> $A`.
struct Template {
  std::vector<TokenId> before;
  std::vector<TokenId> after;
};

Normalizer parse_normalizer(const nlohmann::json& section);       // null, Replace, Prepend, Sequence
PreTokenizer parse_pre_tokenizer(const nlohmann::json& section);  // null, Split merged with previous
Template parse_post_processor(const nlohmann::json& section);     // TemplateProcessing

}  // namespace sluice::ltx2
