#pragma once
// Which parts of a range of addresses are taken: first fit from the lowest address, neighbours that are free
// join.  Low addresses are used first, so that what was touched once is used again before anything new is.
// Offsets only; who owns the memory decides what they mean.  One thread at a time.

#include <sluice/units.h>

#include <map>
#include <optional>
#include <vector>

namespace sluice::kernels {

class BlockList {
 public:
  explicit BlockList(Bytes size);

  // The offset of `size` bytes, rounded up to 64; empty if no free part is large enough.
  std::optional<Bytes> take(Bytes size);
  // `offset` as take() returned it.
  void give_back(Bytes offset);

  Bytes live() const { return live_; }      // taken now
  Bytes extent() const { return extent_; }  // end of the highest block that was ever taken
  void forget_extent();                     // the highest that is taken now

  struct Part {
    Bytes offset = 0;
    Bytes size = 0;
  };
  // Free parts below the extent, in order.
  std::vector<Part> holes() const;

 private:
  const Bytes size_;
  std::map<Bytes, Bytes> free_;   // offset -> size
  std::map<Bytes, Bytes> taken_;  // offset -> size
  Bytes live_ = 0;
  Bytes extent_ = 0;
};

}  // namespace sluice::kernels
