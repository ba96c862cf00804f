#pragma once
// The tokens of a tokenizer and their ids: a hash table from text to id that owns its texts.
// Built once and never changed, so any thread may ask.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::ltx2 {

using TokenId = std::int32_t;

struct VocabularyEntry {
  std::string_view token;
  TokenId id = 0;
};

class Vocabulary {
 public:
  // Error(bad_input) names a token that is listed twice.
  explicit Vocabulary(std::span<const VocabularyEntry> entries);

  std::size_t size() const { return size_; }

  std::optional<TokenId> find(std::string_view token) const;

  // The same for many tokens at once, several times faster: the table is larger than a cache, so the places
  // are asked for before they are needed.  `ids` has the length of `tokens`; kUnknown stands where a token is
  // not listed.
  static constexpr TokenId kUnknown = -1;
  void find_all(std::span<const std::string_view> tokens, std::span<TokenId> ids) const;

 private:
  struct Slot {
    std::uint32_t hash = 0;
    TokenId id = kUnknown;  // kUnknown: the slot is free
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
  };

  std::string_view text(const Slot& slot) const {
    return std::string_view(texts_).substr(slot.offset, slot.length);
  }
  // The slot that holds `token`, or the free one where it belongs.
  std::size_t locate(std::string_view token, std::uint32_t hash) const;

  std::string texts_;  // all tokens, one behind the other
  std::vector<Slot> slots_;
  std::size_t mask_ = 0;  // slots_.size() - 1, a power of two less one
  std::size_t size_ = 0;
};

}  // namespace sluice::ltx2
