#pragma once
// How the bytes of a checkpoint are read.  None of it changes what is delivered.

#include <sluice/units.h>

#include <cstddef>
#include <string_view>

namespace sluice {

enum class ReadBackend {
  automatic,  // chosen for each shard from where the file lies, what of it is cached, and where it goes
  mmap,       // copied out of a mapping
  pread,      // buffered reads by several threads
  direct,     // O_DIRECT reads, past the page cache; refused where the file system cannot
  uring,      // io_uring: one thread, several requests in flight
};

std::string_view to_string(ReadBackend backend);        // "auto", "mmap", "pread", "direct", "uring"
ReadBackend parse_read_backend(std::string_view name);  // Error(usage) that lists the names

enum class CachePolicy {
  automatic,  // what serves this load best: the page cache may or may not hold the file afterwards
  keep,       // what is read stays in the page cache
  drop,       // what reading brought in is let go behind the reader; what was there before stays
  prefetch,   // keep, and the system is asked to read ahead: for network mounts
};

std::string_view to_string(CachePolicy policy);         // "auto", "keep", "drop", "prefetch"
CachePolicy parse_cache_policy(std::string_view name);  // Error(usage) that lists the names

// Bytes of one read.  Below 1 MiB the price of a call shows, above 8 MiB the last reads leave threads idle.
inline constexpr Bytes kDefaultChunk = MiB(8);
inline constexpr Bytes kLeastChunk = KiB(64);
inline constexpr Bytes kMostChunk = MiB(256);
// Buffers that tensors pass through on their way to a sink without memory of its own, all together.
inline constexpr Bytes kDefaultPool = MiB(32);
inline constexpr Bytes kMostPool = GiB(4);

// io_uring requests in flight.
inline constexpr unsigned kDefaultDepth = 8;
inline constexpr unsigned kMostDepth = 256;

struct ReadOptions {
  ReadBackend backend = ReadBackend::automatic;
  CachePolicy cache = CachePolicy::automatic;
  unsigned threads = 0;         // that read; 0: by backend, at most 4
  unsigned depth = 0;           // io_uring requests in flight; 0: 8
  bool ring_direct = true;      // uring past the page cache where the file system can
  Bytes chunk = kDefaultChunk;  // rounded up to a multiple of 64 KiB
  Bytes pool = kDefaultPool;    // at least two chunks: a smaller one makes the chunks smaller
  // More reads than this that are smaller than 64 KiB each, and automatic reads through the page cache.
  std::size_t small_reads_cap = 5000;
};

}  // namespace sluice
