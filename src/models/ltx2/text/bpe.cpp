#include "models/ltx2/text/bpe.h"

#include "models/ltx2/text/utf8.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::ltx2 {

Bpe::Bpe(BpeOptions options, Vocabulary vocabulary, std::span<const MergeEntry> merges)
    : options_(std::move(options)), vocabulary_(std::move(vocabulary)), merges_(merges, vocabulary_) {
  if (options_.unk_token) {
    unk_ = vocabulary_.find(*options_.unk_token);
    if (!unk_) {
      throw Error(ErrorKind::bad_input,
                  fmt::format("unk_token '{}' is not in the vocabulary", *options_.unk_token));
    }
  }
  for (unsigned byte = 0; byte < bytes_.size(); ++byte)
    bytes_[byte] = vocabulary_.find(fmt::format("<0x{:02X}>", byte));
}

void Bpe::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (options_.ignore_merges) {
    if (auto whole = vocabulary_.find(piece)) {
      ids.push_back(*whole);
      return;
    }
  }
  std::vector<TokenId> symbols = first_symbols(piece);
  merge_symbols(merges_, symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

// Follows the tokenizers library (BPE::merge_word) in an order that looks odd: an unknown code point is held
// back until one that is in the vocabulary comes, so bytes of a code point in between stand before it, and it
// fuses across them. With all 256 bytes in the vocabulary, as in Gemma's, nothing is ever unknown.
std::vector<TokenId> Bpe::first_symbols(std::string_view piece) const {
  std::vector<TokenId> symbols;
  symbols.reserve(piece.size());
  bool unk_held = false;
  for (std::size_t i = 0, length = 0; i < piece.size(); i += length) {
    length = code_point_length(piece[i]);
    std::string_view code_point = piece.substr(i, length);
    if (auto id = vocabulary_.find(code_point)) {
      if (std::exchange(unk_held, false)) symbols.push_back(*unk_);
      symbols.push_back(*id);
    } else if (!(options_.byte_fallback && append_bytes(code_point, symbols)) && unk_) {
      if (unk_held && !options_.fuse_unk) symbols.push_back(*unk_);
      unk_held = true;
    }
  }
  if (unk_held) symbols.push_back(*unk_);
  return symbols;
}

bool Bpe::append_bytes(std::string_view code_point, std::vector<TokenId>& symbols) const {
  auto token = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
  if (!std::ranges::all_of(code_point, [&](char byte) { return token(byte).has_value(); })) return false;
  for (char byte : code_point) symbols.push_back(*token(byte));
  return true;
}

}  // namespace sluice::ltx2
