#include "models/ltx2/text/vocabulary.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <array>
#include <bit>
#include <functional>
#include <limits>

namespace sluice::ltx2 {
namespace {

std::uint32_t hash_of(std::string_view token) {
  auto hash = static_cast<std::uint64_t>(std::hash<std::string_view>{}(token));
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

Vocabulary::Vocabulary(std::span<const VocabularyEntry> entries) : size_(entries.size()) {
  // At most half full, so that a search ends after a slot or two.
  slots_.resize(std::bit_ceil(2 * entries.size() + 2));
  mask_ = slots_.size() - 1;
  std::size_t bytes = 0;
  for (const VocabularyEntry& entry : entries) bytes += entry.token.size();
  if (bytes > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorKind::bad_input,
                fmt::format("the vocabulary has {} bytes of text, more than 4 GiB", bytes));
  }
  texts_.reserve(bytes);
  for (const VocabularyEntry& entry : entries) {
    std::uint32_t hash = hash_of(entry.token);
    Slot& slot = slots_[locate(entry.token, hash)];
    if (slot.id != kUnknown) {
      throw Error(ErrorKind::bad_input, fmt::format("the vocabulary lists token '{}' twice, as {} and as {}",
                                                    entry.token, slot.id, entry.id));
    }
    slot = {hash, entry.id, static_cast<std::uint32_t>(texts_.size()),
            static_cast<std::uint32_t>(entry.token.size())};
    texts_ += entry.token;
  }
}

std::size_t Vocabulary::locate(std::string_view token, std::uint32_t hash) const {
  for (std::size_t i = hash & mask_;; i = (i + 1) & mask_) {
    const Slot& slot = slots_[i];
    if (slot.id == kUnknown || (slot.hash == hash && text(slot) == token)) return i;
  }
}

std::optional<TokenId> Vocabulary::find(std::string_view token) const {
  TokenId id = slots_[locate(token, hash_of(token))].id;
  return id == kUnknown ? std::nullopt : std::optional(id);
}

void Vocabulary::find_all(std::span<const std::string_view> tokens, std::span<TokenId> ids) const {
  constexpr std::size_t kAhead = 64;
  std::array<std::uint32_t, kAhead> hashes;
  for (std::size_t start = 0; start < tokens.size(); start += kAhead) {
    auto batch = tokens.subspan(start, std::min(kAhead, tokens.size() - start));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      hashes[i] = hash_of(batch[i]);
      __builtin_prefetch(&slots_[hashes[i] & mask_]);
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      __builtin_prefetch(texts_.data() + slots_[hashes[i] & mask_].offset);
    }
    for (std::size_t i = 0; i < batch.size(); ++i) ids[start + i] = slots_[locate(batch[i], hashes[i])].id;
  }
}

}  // namespace sluice::ltx2
