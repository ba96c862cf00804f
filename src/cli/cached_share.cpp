#include "cli/cached_share.h"

#include "base/file.h"
#include "bytes/read/page_cache.h"

#include <sluice/error.h>

#include <fcntl.h>

#include <algorithm>

namespace sluice::cli {

double cached_share(const Checkpoint& checkpoint) {
  Bytes cached = 0, size = 0;
  for (const Shard& shard : checkpoint.shards()) {
    cached += bytes::cached_bytes(shard.path);
    size += shard.file_size;
  }
  return size > 0 ? static_cast<double>(cached) / static_cast<double>(size) : 0;
}

double empty_cache(const Checkpoint& checkpoint) {
  for (const Shard& shard : checkpoint.shards())
    ::posix_fadvise(File::open(shard.path).descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  return cached_share(checkpoint);
}

double fill_cache(const Checkpoint& checkpoint, const CancelToken& cancel) {
  std::vector<std::byte> buffer(MiB(8));
  for (const Shard& shard : checkpoint.shards()) {
    const File file = File::open(shard.path);
    for (Bytes at = 0; at < shard.file_size; at += buffer.size()) {
      if (cancel.cancelled()) throw Error(ErrorKind::interrupted, "interrupted");
      read_exact(file, std::span(buffer).first(std::min<Bytes>(buffer.size(), shard.file_size - at)), at,
                 "the file");
    }
  }
  return cached_share(checkpoint);
}

}  // namespace sluice::cli
