#pragma once
// A file opened past the page cache, with what its reads must be multiples of.

#include "base/file.h"
#include "bytes/read/shard_reader.h"
#include "bytes/read/shard_source.h"

namespace sluice::bytes {

struct DirectFile {
  File file;
  ReadAlignment alignment;  // offset is a multiple of memory
};

// Opens the same file again with O_DIRECT, asks the system for the alignment and tries a first read.
// Error(io) naming the file system and --read-backend pread where any of it is refused.
DirectFile open_direct(const File& file);

// Where a direct read into `to` must get to: the end of its last span, or of the file.  Error(internal)
// unless offset, addresses and sizes are multiples of the alignment; Error(corrupt_file) behind the file's
// end.
Bytes direct_end(const ShardSource& source, ReadAlignment alignment, Bytes offset,
                 std::span<const std::span<std::byte>> to);

// The system refuses a direct read that it took before or elsewhere: it can be made through the page cache.
bool refuses_direct(int error_number);
inline constexpr std::string_view kDirectRefused =
    "direct reads are refused in the middle of the file: read through the page cache";

}  // namespace sluice::bytes
