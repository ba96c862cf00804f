#pragma once
// What a ring of slots needs of a device, and no more: copies out of host memory that go on in the
// background, and marks to wait for.  Without LibTorch, so that the ring can be tested where there is none.
//
// An engine belongs to one thread at a time.  Its functions throw Error(io) where the device fails.

#include <sluice/units.h>

#include <cstddef>
#include <span>

namespace sluice::weights {

class CopyEngine {
 public:
  virtual ~CopyEngine() = default;

  // Begins to copy `from` to the bytes from `offset` on of destination `to`, a number that means something to
  // the engine.  Copies take place in the order in which they were begun, any time later: `from` must stay as
  // it is until then.
  virtual void copy(std::span<const std::byte> from, std::size_t to, Bytes offset) = 0;

  // Puts the slot's mark behind all copies that were begun.
  virtual void record(std::size_t slot) = 0;
  // Returns when the copies before the slot's last mark have taken place; at once if it has none.
  virtual void wait(std::size_t slot) = 0;

  // Returns when nothing is being copied any more, whatever became of it.
  virtual void drain() noexcept = 0;
};

}  // namespace sluice::weights
