#pragma once
// tokenizer.json as a table: every section read and checked for itself, nothing built from it yet.  The long
// lists are views into the file's text, which lives as long as the table does.

#include "models/ltx2/text/added_tokens.h"
#include "models/ltx2/text/bpe.h"
#include "models/ltx2/text/merges.h"
#include "models/ltx2/text/normalizer.h"
#include "models/ltx2/text/tokenizer_parts.h"
#include "models/ltx2/text/vocabulary.h"

#include <filesystem>
#include <memory>
#include <vector>

namespace sluice::ltx2 {

struct TokenizerJson {
  std::vector<AddedToken> added_tokens;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Template frame;
  BpeOptions bpe;
  std::vector<VocabularyEntry> vocabulary;  // in the file's order
  std::vector<MergeEntry> merges;           // by rank
  std::shared_ptr<const void> document;     // owns what the views above look at
};

// Error(bad_input): the file is missing, is something else, is damaged, or asks for what this tokenizer does
// not do. Messages do not name the file yet: the caller knows it.
TokenizerJson read_tokenizer_json(const std::filesystem::path& path);

}  // namespace sluice::ltx2
