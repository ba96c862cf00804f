#pragma once
// Keeps what a checkpoint's files have in the page cache down to what they had when this was made, over many
// loads and uses: pages that are still on their way from the disk at the end of one are not taken by the next
// for what was there before.

#include "bytes/read/cache_window.h"
#include "bytes/read/mapping.h"

#include <sluice/checkpoint.h>

#include <memory>
#include <span>
#include <vector>

namespace sluice::bytes {

// One thread.
class CacheWatch {
 public:
  // `mappings`: of all shards, whose pages are let go of first, or empty; they must outlive it and not move.
  explicit CacheWatch(const Checkpoint& checkpoint, std::span<const Mapping> mappings = {});
  ~CacheWatch();  // drops
  CacheWatch(const CacheWatch&) = delete;
  CacheWatch& operator=(const CacheWatch&) = delete;

  // Takes out of the page cache what was not in it before.
  void drop();

 private:
  const Checkpoint checkpoint_;                        // keeps the files open
  std::vector<std::unique_ptr<CacheWindow>> windows_;  // by shard
};

}  // namespace sluice::bytes
