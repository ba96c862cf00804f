#pragma once
// Added tokens: texts that are tokens wherever they stand and never go through byte pair encoding.
// Built once and never changed, so any thread may ask.

#include "models/ltx2/text/normalizer.h"
#include "models/ltx2/text/vocabulary.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::ltx2 {

struct AddedToken {
  TokenId id = 0;
  std::string content{};
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // swallows white space on its left
  bool rstrip = false;       // swallows white space on its right
  bool normalized = false;   // looked for in the normalized text, its content normalized too
  bool special = false;

  bool operator==(const AddedToken&) const = default;
};

// The tokens without repetitions.  Error(bad_input) names one that contradicts the vocabulary or an earlier
// one.
std::vector<AddedToken> checked_added_tokens(std::vector<AddedToken> tokens, const Vocabulary& vocabulary);

// A piece of a text: an added token, or text between added tokens.
struct Piece {
  std::string_view text;
  std::optional<TokenId> added;
};

// Finds a set of added tokens in text: leftmost first, of those the longest.
class AddedTokenFinder {
 public:
  // `texts`: what to look for, for each token; no text may be empty or stand twice (Error bad_input).
  AddedTokenFinder(std::vector<AddedToken> tokens, std::span<const std::string> texts);

  // Cuts `text` into pieces, none of them empty.
  std::vector<Piece> split(std::string_view text) const;

 private:
  // A tree over bytes in which the children of a node are a list.
  struct Node {
    char byte = 0;
    std::uint32_t child = 0;    // 0: none
    std::uint32_t sibling = 0;  // 0: none
    std::uint32_t token = 0;    // index into tokens_ plus one; 0: none ends here
  };
  struct Match {
    std::size_t start = 0;
    std::size_t end = 0;
    std::uint32_t token = 0;
  };

  void insert(std::string_view text, std::uint32_t token);
  std::uint32_t child_of(std::uint32_t node, char byte) const;
  std::optional<Match> next_match(std::string_view text, std::size_t from) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_ = {Node{}};  // the first is the root
};

}  // namespace sluice::ltx2
