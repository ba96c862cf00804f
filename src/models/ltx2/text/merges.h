#pragma once
// The merges of byte pair encoding: which two neighbouring tokens become one, and in what order.
// Built once and never changed, so any thread may ask.

#include "models/ltx2/text/vocabulary.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::ltx2 {

// One line of the list; its place in the list is its rank.
struct MergeEntry {
  std::string_view left;
  std::string_view right;
};

struct Merge {
  std::uint32_t rank = 0;
  TokenId merged = 0;
};

class MergeTable {
 public:
  // Error(bad_input) names a merge whose parts or whole are not in the vocabulary.  Of equal lines the last
  // one counts.
  MergeTable(std::span<const MergeEntry> merges, const Vocabulary& vocabulary);

  const Merge* find(TokenId left, TokenId right) const;  // nullptr if these two do not merge

 private:
  struct Slot {
    std::uint64_t pair = kFree;
    Merge merge;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};  // no pair: ids are not negative

  static std::uint64_t pair_of(TokenId left, TokenId right) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
           static_cast<std::uint32_t>(right);
  }
  std::size_t home(std::uint64_t pair) const {
    return (pair * 0x9e3779b97f4a7c15u) >> shift_;
  }  // Fibonacci hashing
  void insert_batch(std::span<const TokenId> left_right_merged, std::uint32_t first_rank);

  std::vector<Slot> slots_;
  unsigned shift_ = 0;  // 64 less the bits of a slot number
};

// Applies the merge of lowest rank, the leftmost first, until none applies.  `symbols`: token ids, changed in
// place. n log n for n symbols.
void merge_symbols(const MergeTable& merges, std::vector<TokenId>& symbols);

namespace reference {
// The same by searching the whole row for each step: n squared.
void merge_symbols(const MergeTable& merges, std::vector<TokenId>& symbols);
}  // namespace reference

}  // namespace sluice::ltx2
