#pragma once
// One pass over the wanted ranges of one shard: reader threads or an io_uring fill places and buffers, the
// caller's thread consumes.  Everything is settled before: ways, routes, buffers.

#include "bytes/load/placement.h"
#include "bytes/load/read_queue.h"
#include "bytes/read/cache_window.h"
#include "bytes/read/prefetch.h"
#include "bytes/read/ring.h"
#include "bytes/read/shard_reader.h"

#include <sluice/progress.h>

#include <atomic>
#include <functional>
#include <span>
#include <vector>

namespace sluice::bytes {

struct ShardPass {
  std::span<const WantedRange> ranges;
  std::vector<Read> reads;
  RangeAddresses addresses;
  std::vector<Route> routes;  // by read
  ReadAlignment alignment;    // of pooled reads: widened to it
  std::vector<std::span<std::byte>> buffers;
  unsigned threads = 1;
  bool touch = false;             // the destinations' pages are touched before they are read into
  CacheWindow* window = nullptr;  // nullptr: what is read may stay
  Prefetch* prefetch = nullptr;   // nullptr: the system is not asked to read ahead
  std::atomic<std::uint64_t> touch_nanoseconds = 0;  // of all readers together
};

// Called in the caller's thread for every read, in order: `bytes` as Deliverer::deliver has them.
using ConsumeRead = std::function<void(const Read& read, std::span<const std::byte> bytes)>;

// Throw the first error of any thread, after all have ended.
void run_with_threads(ShardPass& pass, ShardReader& reader, const ConsumeRead& consume,
                      const CancelToken* cancel, const Warn& warn);
// False if the system refuses the one thread that it needs: nothing was read then.
bool run_with_ring(ShardPass& pass, Ring& ring, const ConsumeRead& consume, const CancelToken* cancel);

}  // namespace sluice::bytes
