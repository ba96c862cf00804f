#include "bytes/read/choose_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sluice::bytes {
namespace {

// From here on reading past the page cache loses.  Measured on two cores, 1 GiB, touched memory: with idle
// cores buffered reads win from a quarter on (13 GiB/s cached, 2.8 not, 3.5 direct), with busy ones not even
// at three quarters, since a direct read costs no copy.
constexpr double kMostlyCached = 0.5;
constexpr unsigned kBufferedThreads = 4;
// Two keep a disk busy; more than four bring nothing.
constexpr unsigned kLeastDirectThreads = 2, kMostDirectThreads = 4;
// Requests of more readers arrive out of order, which servers take for random reading.
constexpr unsigned kMostNetworkThreads = 2;

bool wants_cache(CachePolicy policy) {
  return policy == CachePolicy::keep || policy == CachePolicy::prefetch;
}

std::string percent_cached(const ShardFacts& facts) {
  // Never rounded up to all, nor down to nothing, of it.
  const double percent = 100 * facts.cached_share;
  const double shown = percent > 50 ? std::floor(percent) : std::ceil(percent);
  return fmt::format("{:.0f} % of the file is in the page cache", shown);
}

// A way through the page cache, under the policy.  Uncached reads of several threads leave some MiB of what
// was read ahead behind (8 of 256 measured), so that to drop takes the window too.
ReadChoice buffered(ReadWay way, const ShardFacts& facts, CachePolicy policy, std::string reason) {
  ReadChoice choice{.way = way,
                    .prefetch = policy == CachePolicy::prefetch,
                    .threads = kBufferedThreads,
                    .reason = std::move(reason)};
  choice.drop_behind = policy == CachePolicy::drop;
  if (choice.drop_behind && way == ReadWay::pread && facts.uncached_possible)
    choice.way = ReadWay::pread_uncached;
  return choice;
}

// The file's only place is the page cache: nothing can be dropped, nothing is ahead.
ReadChoice from_memory(const ShardFacts& facts) {
  return {.threads = kBufferedThreads, .reason = fmt::format("{} lies in memory", facts.file_system)};
}

// Large reads in ascending order with more asked for ahead.  Uncached reads would leave in the page cache
// what the asking brought in.
ReadChoice from_network(const ShardFacts& facts, CachePolicy policy, unsigned cores) {
  return {.drop_behind = policy == CachePolicy::drop,
          .prefetch = true,
          .threads = std::clamp(cores, 1u, kMostNetworkThreads),
          .reason = fmt::format("{} is a network file system", facts.file_system)};
}

ReadChoice direct(const ShardFacts& facts, unsigned cores) {
  return {.way = ReadWay::direct,
          .threads = std::clamp(cores, kLeastDirectThreads, kMostDirectThreads),
          .reason = fmt::format("{} takes direct reads, {}", facts.file_system, percent_cached(facts))};
}

// Where direct reads are not to be had: what is read once need not push other files out of memory.
ReadChoice without_direct(const ShardFacts& facts, CachePolicy policy) {
  std::string why = fmt::format("{} takes no direct reads", facts.file_system);
  if (policy == CachePolicy::automatic && facts.uncached_possible) {
    return {.way = ReadWay::pread_uncached, .threads = kBufferedThreads, .reason = std::move(why)};
  }
  ReadChoice choice = buffered(ReadWay::pread, facts, policy, std::move(why));
  if (policy == CachePolicy::automatic && facts.wanted > facts.available_memory) {
    choice.drop_behind = true;
    choice.reason += fmt::format(", and {} are more than the {} of free memory", format_bytes(facts.wanted),
                                 format_bytes(facts.available_memory));
  }
  return choice;
}

ReadChoice choose_automatically(const ShardFacts& facts, const ReadOptions& options, unsigned cores) {
  if (facts.kind == FileSystemKind::memory) return from_memory(facts);
  if (facts.kind == FileSystemKind::network) return from_network(facts, options.cache, cores);
  if (facts.cached_share >= kMostlyCached) {
    return buffered(ReadWay::pread, facts, options.cache, percent_cached(facts));
  }
  if (facts.small_reads > options.small_reads_cap) {
    return buffered(ReadWay::pread, facts, options.cache,
                    fmt::format("{} reads are smaller than 64 KiB, more than {}", facts.small_reads,
                                options.small_reads_cap));
  }
  if (wants_cache(options.cache)) {
    return buffered(ReadWay::pread, facts, options.cache,
                    fmt::format("the page cache is to hold the file (--cache {})", to_string(options.cache)));
  }
  // Also into memory that is new: readers touch it ahead of their reads, in one call a read, and a direct
  // read into it was several times as fast as a buffered one (sluice bench load, cold, fresh).
  if (facts.direct_possible) return direct(facts, cores);
  return without_direct(facts, options.cache);
}

ReadChoice take_ring(const ShardFacts& facts, const ReadOptions& options, std::string reason) {
  const bool past_cache = options.ring_direct && facts.direct_possible && !wants_cache(options.cache);
  return {.way = past_cache ? ReadWay::direct : ReadWay::pread,
          .ring = true,
          // Also past the cache: threads may have to take over.
          .drop_behind = options.cache == CachePolicy::drop,
          .prefetch = !past_cache && options.cache == CachePolicy::prefetch,
          .threads = kBufferedThreads,
          .reason = std::move(reason)};
}

ReadChoice choose_kind(const ShardFacts& facts, const ReadOptions& options, unsigned cores) {
  std::string asked = fmt::format("asked for (--read-backend {})", to_string(options.backend));
  switch (options.backend) {
    case ReadBackend::automatic:
      return choose_automatically(facts, options, cores);
    case ReadBackend::mmap:
      return buffered(ReadWay::mmap, facts, options.cache, std::move(asked));
    case ReadBackend::pread:
      return buffered(ReadWay::pread, facts, options.cache, std::move(asked));
    case ReadBackend::direct:
      return {.way = ReadWay::direct,
              .threads = std::clamp(cores, kLeastDirectThreads, kMostDirectThreads),
              .reason = std::move(asked)};
    case ReadBackend::uring:
      return take_ring(facts, options, std::move(asked));
  }
  return {};
}

}  // namespace

ReadChoice choose_reader(const ShardFacts& facts, const ReadOptions& options, unsigned cores) {
  ReadChoice choice = choose_kind(facts, options, cores);
  if (options.threads != 0) choice.threads = options.threads;
  return choice;
}

}  // namespace sluice::bytes
