#pragma once
// Byte pair encoding of one piece of text, as tokenizer.json's model "BPE" with whole code points as its
// first symbols means it.  Built once and never changed, so any thread may encode.

#include "models/ltx2/text/merges.h"
#include "models/ltx2/text/vocabulary.h"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::ltx2 {

struct BpeOptions {
  std::optional<std::string> unk_token;  // without one, what is not in the vocabulary vanishes
  bool fuse_unk = false;                 // neighbouring unknown code points become one unk_token
  bool byte_fallback = false;  // an unknown code point becomes its bytes "<0xHH>", if all of them are tokens
  bool ignore_merges = false;  // a piece that is a token as a whole is that token
};

class Bpe {
 public:
  // Error(bad_input) if the unk_token or a merge is not in the vocabulary.
  Bpe(BpeOptions options, Vocabulary vocabulary, std::span<const MergeEntry> merges);

  // Appends the ids of `piece`, valid UTF-8 of less than 4 GiB.
  void encode(std::string_view piece, std::vector<TokenId>& ids) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  std::vector<TokenId> first_symbols(std::string_view piece) const;
  bool append_bytes(std::string_view code_point, std::vector<TokenId>& symbols) const;

  BpeOptions options_;
  Vocabulary vocabulary_;
  MergeTable merges_;
  std::optional<TokenId> unk_;
  std::array<std::optional<TokenId>, 256> bytes_;  // "<0x00>" to "<0xFF>"
};

}  // namespace sluice::ltx2
