#pragma once
// The buffers of a load: one piece of memory, cut into equal buffers that begin at page boundaries.  It is
// taken when the first read needs it and kept by the process for the next load, since touching new memory
// costs more than reading into it.

#include <sluice/read_options.h>
#include <sluice/slab.h>

#include <memory>
#include <span>
#include <vector>

namespace sluice::bytes {

class LoadPool {
 public:
  // Error(usage) for a chunk or pool outside the limits of read_options.h.
  explicit LoadPool(const ReadOptions& options);
  ~LoadPool();

  // Bytes of one read: what was asked for, less where two buffers of it exceed the pool.
  Bytes chunk() const { return chunk_; }

  // At most `most` buffers of chunk() bytes, at least two.  Error(does_not_fit).
  std::vector<std::span<std::byte>> buffers(std::size_t most);
  std::span<std::byte> memory() const;  // of all buffers; empty before the first need
  Bytes used() const { return memory().size(); }

 private:
  Bytes chunk_ = 0;
  Bytes limit_ = 0;
  Bytes used_ = 0;  // of the slab, which may be a larger load's
  std::unique_ptr<Slab> slab_;
};

}  // namespace sluice::bytes
