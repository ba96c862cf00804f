#pragma once
// Bytes on their way to a device: through slots of host memory that are filled in turn, while the device
// still copies out of the others.  A slot is written to again only when the engine says that all of it has
// been copied; small pieces share a slot.
//
// One thread.  Who makes the ring owns the slots and the engine, and keeps both longer.

#include "weights/device_ring/copy_engine.h"

#include <vector>

namespace sluice::weights {

class DeviceRing {
 public:
  // At least one slot; none is empty.
  DeviceRing(CopyEngine& engine, std::vector<std::span<std::byte>> slots);
  // Waits for what is being copied: the slots are free when it returns, also after an error.
  ~DeviceRing();
  DeviceRing(const DeviceRing&) = delete;
  DeviceRing& operator=(const DeviceRing&) = delete;

  // Sends `bytes`, which may be changed when it returns, to the bytes from `offset` on of destination `to`.
  void append(std::size_t to, Bytes offset, std::span<const std::byte> bytes);

  // Returns when every byte that was appended is on the device.  More can be appended after it.
  void finish();

 private:
  void next_slot();

  CopyEngine& engine_;
  const std::vector<std::span<std::byte>> slots_;
  std::size_t slot_ = 0;    // that is being filled
  std::size_t filled_ = 0;  // bytes of it
};

}  // namespace sluice::weights
