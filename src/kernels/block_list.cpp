#include "kernels/block_list.h"

#include <algorithm>

namespace sluice::kernels {
namespace {

constexpr Bytes kGrain = 64;

}  // namespace

BlockList::BlockList(Bytes size) : size_(size / kGrain * kGrain) {
  if (size_ > 0) free_.emplace(0, size_);
}

std::optional<Bytes> BlockList::take(Bytes size) {
  if (size > size_) return std::nullopt;
  const Bytes need = std::max<Bytes>((size + kGrain - 1) / kGrain * kGrain, kGrain);
  auto part = std::find_if(free_.begin(), free_.end(), [&](const auto& p) { return p.second >= need; });
  if (part == free_.end()) return std::nullopt;
  const auto [offset, length] = *part;
  free_.erase(part);
  if (length > need) free_.emplace(offset + need, length - need);
  taken_.emplace(offset, need);
  live_ += need;
  extent_ = std::max(extent_, offset + need);
  return offset;
}

void BlockList::give_back(Bytes offset) {
  const auto block = taken_.find(offset);
  if (block == taken_.end()) return;
  Bytes begin = offset, size = block->second;
  live_ -= size;
  taken_.erase(block);
  auto after = free_.lower_bound(begin);
  if (after != free_.end() && after->first == begin + size) {
    size += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      free_.erase(before);
    }
  }
  free_.emplace(begin, size);
}

void BlockList::forget_extent() {
  extent_ = taken_.empty() ? 0 : taken_.rbegin()->first + taken_.rbegin()->second;
}

std::vector<BlockList::Part> BlockList::holes() const {
  std::vector<Part> parts;
  for (const auto& [offset, size] : free_) {
    if (offset >= extent_) break;
    parts.push_back({offset, std::min(size, extent_ - offset)});
  }
  return parts;
}

}  // namespace sluice::kernels
