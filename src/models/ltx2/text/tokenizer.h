#pragma once
// From a prompt to token ids, as the tokenizer.json of Gemma 3 says: added tokens, normalizer, byte pair
// encoding, template.  Loaded once and never changed, so any thread may encode.  No LibTorch.

#include "models/ltx2/text/vocabulary.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace sluice::ltx2 {

struct Encoded {
  std::vector<TokenId> ids;  // at most as many as asked for
  std::size_t tokens = 0;    // before cutting
};

class Tokenizer {
 public:
  // Error(bad_input) names the file: it is missing, is something else, is damaged, contradicts itself, or
  // asks for something this tokenizer does not do.
  static Tokenizer load(const std::filesystem::path& tokenizer_json);

  // The ids of `text` without white space at its ends (Python's str.strip), with <bos> in front.  An empty
  // text is <bos> alone.  Error(usage) if `text` is not UTF-8, with the offset of the first wrong byte.
  std::vector<TokenId> encode(std::string_view text) const;

  // The same, cut on the right so that at most `max_length` ids stay, <bos> among them.  Error(usage) if the
  // template's own ids alone are more.
  Encoded encode_truncated(std::string_view text, std::size_t max_length) const;

  // What fills a row on the left.  Typed text may be this id too: go by the mask, never by the id.
  TokenId pad_id() const;

  // One more than the greatest id; a model needs at least as many embeddings.
  std::size_t vocabulary_size() const;

 private:
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace sluice::ltx2
