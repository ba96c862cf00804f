#pragma once
// Which way a shard is read, and why: facts are collected from the system, the decision is a pure function.

#include "base/file.h"
#include "bytes/read/file_system.h"
#include "bytes/read/shard_reader.h"

#include <sluice/read_options.h>

#include <string>

namespace sluice::bytes {

// What is known of a shard and of the load before it is read.
struct ShardFacts {
  std::string file_system;  // "ext4", "overlayfs", "nfs", or the number for unknown ones
  FileSystemKind kind = FileSystemKind::local;
  Bytes file_size = 0;
  double cached_share = 0;
  bool direct_possible = false;    // the file opens with O_DIRECT, its alignment is known, a read succeeded
  bool uncached_possible = false;  // the kernel and the file system know RWF_DONTCACHE
  Bytes wanted = 0;                // bytes of this shard that are to be read
  std::size_t small_reads = 0;     // reads below 64 KiB after neighbours were joined
  Bytes available_memory = 0;
};

// What the file and the system tell; the rest is the caller's.  Only what the options can make use of is
// tried out: direct reads for `automatic` and `uring`, uncached ones for `automatic` and for `pread` with
// `drop`.
ShardFacts collect_facts(const File& file, const ReadOptions& options = {});

struct ReadChoice {
  ReadWay way = ReadWay::pread;
  bool ring = false;         // through io_uring
  bool drop_behind = false;  // what reading brings into the page cache is let go behind it (CacheWindow)
  bool prefetch = false;     // more is asked for ahead of the reader (Prefetch)
  unsigned threads = 4;      // of a ring: those that take over where the system refuses it
  std::string reason;        // "61 % of the file is in the page cache", "fuse is a network file system", …
};

// Explicit backends are taken as they are; what `automatic` chooses follows this order: memory and network
// file systems are read buffered; so is what is mostly cached, many small reads, and what shall stay in the
// page cache (CachePolicy::keep, prefetch); then direct where it is possible; then uncached
// reads; then buffered reads, with a dropping window where the file does not fit the
// free memory.  CachePolicy::drop gives every buffered way a dropping window and makes reads uncached where
// that is possible.
ReadChoice choose_reader(const ShardFacts& facts, const ReadOptions& options, unsigned cores);

}  // namespace sluice::bytes
