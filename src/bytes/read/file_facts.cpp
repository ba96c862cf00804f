// What the system tells about a shard's file before it is read.
#include "base/syscalls.h"
#include "bytes/read/choose_reader.h"
#include "bytes/read/direct_file.h"
#include "bytes/read/page_cache.h"

#include <sluice/error.h>

#include <cerrno>

namespace sluice::bytes {
namespace {

bool takes_direct_reads(const File& file) try {
  open_direct(file);
  return true;
} catch (const Error& error) {
  if (error.kind() != ErrorKind::io) throw;
  return false;
}

// At the end of the file: the flag is judged, and nothing is read.
bool takes_uncached_reads(const File& file, Bytes size) {
  std::byte byte{};
  const iovec piece{&byte, 1};
  ssize_t got = -1;
  do {
    got = syscalls().preadv2(file.descriptor(), &piece, 1, static_cast<off_t>(size), kReadUncached);
  } while (got < 0 && errno == EINTR);
  return got >= 0;
}

}  // namespace

ShardFacts collect_facts(const File& file, const ReadOptions& options) {
  const bool automatic = options.backend == ReadBackend::automatic;
  const bool uncached_pread = options.backend == ReadBackend::pread && options.cache == CachePolicy::drop;
  FileSystem system = file_system(file);
  ShardFacts facts{
      .file_system = std::move(system.name), .kind = system.kind, .file_size = file.identity().size};
  if (facts.file_size > 0)
    facts.cached_share = static_cast<double>(cached_bytes(file)) / static_cast<double>(facts.file_size);
  if (automatic || options.backend == ReadBackend::uring) facts.direct_possible = takes_direct_reads(file);
  if (automatic || uncached_pread) facts.uncached_possible = takes_uncached_reads(file, facts.file_size);
  return facts;
}

}  // namespace sluice::bytes
