#include "weights/device_ring/device_ring.h"

#include <algorithm>
#include <cstring>

namespace sluice::weights {
namespace {

// Pieces of a slot begin at cache lines, where copies by devices are fastest.
constexpr std::size_t kPieceAlignment = 64;

std::size_t align_up(std::size_t offset) {
  return (offset + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
}

}  // namespace

DeviceRing::DeviceRing(CopyEngine& engine, std::vector<std::span<std::byte>> slots)
    : engine_(engine), slots_(std::move(slots)) {}

DeviceRing::~DeviceRing() {
  engine_.drain();
}

void DeviceRing::append(std::size_t to, Bytes offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (filled_ >= slots_[slot_].size()) next_slot();
    const std::span<std::byte> free = slots_[slot_].subspan(filled_);
    const std::size_t size = std::min(free.size(), bytes.size());
    std::memcpy(free.data(), bytes.data(), size);
    engine_.copy(free.first(size), to, offset);
    filled_ = align_up(filled_ + size);
    offset += size;
    bytes = bytes.subspan(size);
  }
}

void DeviceRing::finish() {
  if (filled_ > 0) next_slot();
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) engine_.wait(slot);
}

void DeviceRing::next_slot() {
  engine_.record(slot_);
  slot_ = (slot_ + 1) % slots_.size();
  engine_.wait(slot_);
  filled_ = 0;
}

}  // namespace sluice::weights
