#pragma once
// Memory for tensors, taken from the system once and used again: on a virtual machine the first touch of a
// page costs more than reading what goes into it.  A Slab is never given back before its end; loads into it
// that follow find its pages touched.  reserve() and touch() belong to one thread at a time, the rest to any;
// one that was moved from can only be assigned to.

#include <sluice/units.h>

#include <cstddef>
#include <memory>
#include <span>

namespace sluice {

enum class HugePages {
  automatic,  // where a probe shows that touching them costs less a byte, for slabs of 64 MiB and more
  always,
  never,
};

class Slab {
 public:
  explicit Slab(HugePages huge = HugePages::automatic);
  ~Slab();
  Slab(Slab&&) noexcept;
  Slab& operator=(Slab&&) noexcept;

  // Makes it hold at least `size` bytes; what it held is lost if it must grow.  The start is aligned to 2
  // MiB. Error(does_not_fit) where the system refuses; it is empty then, and can be asked for less.
  void reserve(Bytes size);
  std::span<std::byte> bytes() const;  // all that it holds: `size` rounded up to 2 MiB, or more from before
  bool huge() const;                   // what was decided by the reserve() that last made it grow

  // Bytes from the start whose pages have been written to, as far as it was told; never less than before
  // until it grows.
  Bytes touched() const;
  void mark_touched(Bytes end);
  // Touches the first `size` bytes, as far as they are not, with several threads; what they hold stays.
  // Returns the seconds that it took.  Error(does_not_fit).
  double touch(Bytes size, unsigned threads);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
