#include "models/ltx2/text/merges.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <string>

namespace sluice::ltx2 {
namespace {

constexpr std::size_t kBatch = 64;  // merges looked up together, see Vocabulary::find_all

// The three texts of each merge: left, right, and both joined.  Views stay valid until the next call.
class MergeTexts {
 public:
  std::span<const std::string_view> fill(std::span<const MergeEntry> merges) {
    joined_.clear();
    for (const MergeEntry& merge : merges) joined_.append(merge.left).append(merge.right);
    std::size_t offset = 0;
    for (std::size_t i = 0; i < merges.size(); ++i) {
      std::size_t length = merges[i].left.size() + merges[i].right.size();
      texts_[3 * i] = merges[i].left;
      texts_[3 * i + 1] = merges[i].right;
      texts_[3 * i + 2] = std::string_view(joined_).substr(offset, length);
      offset += length;
    }
    return std::span(texts_).first(3 * merges.size());
  }

 private:
  std::string joined_;
  std::array<std::string_view, 3 * kBatch> texts_;
};

void check_known(std::span<const std::string_view> texts, std::span<const TokenId> ids,
                 std::size_t first_rank) {
  auto unknown = std::ranges::find(ids, Vocabulary::kUnknown);
  if (unknown == ids.end()) return;
  auto at = static_cast<std::size_t>(unknown - ids.begin());
  throw Error(ErrorKind::bad_input,
              fmt::format("merge {} ('{}' with '{}') needs token '{}', which the vocabulary lacks",
                          first_rank + at / 3, texts[at - at % 3], texts[at - at % 3 + 1], texts[at]));
}

}  // namespace

MergeTable::MergeTable(std::span<const MergeEntry> merges, const Vocabulary& vocabulary) {
  // At most half full; 16 MiB for the 514,906 merges of Gemma 3.
  slots_.resize(std::bit_ceil(2 * merges.size() + 2));
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots_.size()));
  MergeTexts texts;
  std::array<TokenId, 3 * kBatch> buffer;
  for (std::size_t start = 0; start < merges.size(); start += kBatch) {
    auto wanted = texts.fill(merges.subspan(start, std::min(kBatch, merges.size() - start)));
    auto ids = std::span(buffer).first(wanted.size());
    vocabulary.find_all(wanted, ids);
    check_known(wanted, ids, start);
    insert_batch(ids, static_cast<std::uint32_t>(start));
  }
}

void MergeTable::insert_batch(std::span<const TokenId> ids, std::uint32_t first_rank) {
  for (std::size_t i = 0; i < ids.size(); i += 3)
    __builtin_prefetch(&slots_[home(pair_of(ids[i], ids[i + 1]))], 1);
  for (std::size_t i = 0; i < ids.size(); i += 3) {
    std::uint64_t pair = pair_of(ids[i], ids[i + 1]);
    std::size_t at = home(pair);
    while (slots_[at].pair != kFree && slots_[at].pair != pair) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {pair, {first_rank + static_cast<std::uint32_t>(i / 3), ids[i + 2]}};
  }
}

const Merge* MergeTable::find(TokenId left, TokenId right) const {
  std::uint64_t pair = pair_of(left, right);
  for (std::size_t at = home(pair);; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].pair == pair) return &slots_[at].merge;
    if (slots_[at].pair == kFree) return nullptr;
  }
}

namespace {

// A row of symbols as a linked list, and a heap of the merges that were possible when they were noticed.  An
// entry whose symbol has another partner by now is dropped when it comes up.
class MergeRow {
 public:
  MergeRow(const MergeTable& merges, std::span<const TokenId> symbols)
      : merges_(merges), nodes_(symbols.size()) {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i] = {.id = symbols[i],
                   .previous = i == 0 ? kNone : i - 1,
                   .next = i + 1 == nodes_.size() ? kNone : i + 1};
    }
    heap_.reserve(nodes_.size());
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (const Merge* merge = update(i)) heap_.push_back(key(merge->rank, i));
    }
    std::ranges::make_heap(heap_, std::greater());
  }

  void run() {
    while (!heap_.empty()) {
      std::ranges::pop_heap(heap_, std::greater());
      std::uint64_t top = heap_.back();
      heap_.pop_back();
      auto at = static_cast<std::uint32_t>(top);
      if (nodes_[at].merge && nodes_[at].merge->rank == top >> 32) join(at);
    }
  }

  void write(std::vector<TokenId>& symbols) const {
    symbols.clear();
    for (std::uint32_t i = 0; i != kNone && !nodes_.empty(); i = nodes_[i].next)
      symbols.push_back(nodes_[i].id);
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Node {
    TokenId id = 0;
    std::uint32_t previous = kNone;
    std::uint32_t next = kNone;
    const Merge* merge = nullptr;  // of this symbol with the next
  };

  // Lowest rank first, then leftmost: a node keeps the place of its leftmost symbol.
  static std::uint64_t key(std::uint32_t rank, std::uint32_t at) { return (std::uint64_t{rank} << 32) | at; }

  const Merge* update(std::uint32_t at) {
    Node& node = nodes_[at];
    node.merge = node.next == kNone ? nullptr : merges_.find(node.id, nodes_[node.next].id);
    return node.merge;
  }

  void notice(std::uint32_t at) {
    if (const Merge* merge = update(at)) {
      heap_.push_back(key(merge->rank, at));
      std::ranges::push_heap(heap_, std::greater());
    }
  }

  void join(std::uint32_t at) {
    Node& node = nodes_[at];
    Node& gone = nodes_[node.next];
    node.id = node.merge->merged;
    node.next = gone.next;
    gone.merge = nullptr;
    if (node.next != kNone) nodes_[node.next].previous = at;
    notice(at);
    if (node.previous != kNone) notice(node.previous);
  }

  const MergeTable& merges_;
  std::vector<Node> nodes_;
  std::vector<std::uint64_t> heap_;
};

}  // namespace

void merge_symbols(const MergeTable& merges, std::vector<TokenId>& symbols) {
  MergeRow row(merges, symbols);
  row.run();
  row.write(symbols);
}

namespace reference {

void merge_symbols(const MergeTable& merges, std::vector<TokenId>& symbols) {
  while (true) {
    const Merge* best = nullptr;
    std::size_t best_at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const Merge* merge = merges.find(symbols[i], symbols[i + 1]);
      if (merge && (!best || merge->rank < best->rank)) {
        best = merge;
        best_at = i;
      }
    }
    if (!best) return;
    symbols[best_at] = best->merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

}  // namespace reference

}  // namespace sluice::ltx2
