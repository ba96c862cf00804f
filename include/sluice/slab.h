#pragma once
// Memory for tensors, taken from the system once and used again: on a virtual machine the first touch of a
// page costs more than reading what goes into it.  A Slab is never given back before its end; loads into it
// that follow find its pages touched.

#include <sluice/units.h>

#include <cstddef>
#include <memory>
#include <span>

namespace sluice {

enum class HugePages {
  automatic,  // where a probe at the slab's start shows that touching them costs less a byte
  always,
  never,
};

class Slab {
 public:
  explicit Slab(HugePages huge = HugePages::automatic);
  ~Slab();
  Slab(Slab&&) noexcept;
  Slab& operator=(Slab&&) noexcept;

  // Makes it hold at least `size` bytes; what it held is lost if it must grow.  The start is aligned to 2 MiB.
  // Error(does_not_fit) where the system refuses.
  void reserve(Bytes size);
  std::span<std::byte> bytes() const;
  bool huge() const;  // what was decided

  // Bytes from the start whose pages have been written to.
  Bytes touched() const;
  void mark_touched(Bytes end);
  // Touches the first `size` bytes with several threads; returns the seconds that it took.
  double touch(Bytes size, unsigned threads);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
