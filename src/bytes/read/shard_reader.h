#pragma once
// A ShardReader brings ranges of one shard's file into memory by one way.  The call is wrapped whole: short
// reads, EINTR, the end of the file and the refusals that can be worked around are settled here.

#include "base/file.h"

#include <sluice/read_options.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::bytes {

enum class ReadWay {
  mmap,            // memcpy out of a mapping
  pread,           // preadv
  pread_uncached,  // preadv2 with RWF_DONTCACHE
  direct,          // O_DIRECT
};

std::string_view to_string(ReadWay way);  // "mmap", "pread", "pread uncached", "direct"

// What file offsets, sizes and addresses must be multiples of; powers of two.
struct ReadAlignment {
  Bytes offset = 1;
  Bytes memory = 1;
};

class ShardReader {
 public:
  virtual ~ShardReader() = default;

  // What is done now: `pread` once uncached reads were refused.
  virtual ReadWay way() const = 0;
  virtual ReadAlignment alignment() const { return {}; }

  // Fills `to`, one span after the other, with the bytes from `offset` on.  With an alignment above 1,
  // offset, addresses and sizes are multiples of it, and the last span may reach past the end of the file:
  // what is there is delivered and the rest of the span is left undefined.  Everything, or Error(corrupt_file
  // / io) that names the file, what lies at the offset, and the offset.  Any thread, at the same time.
  virtual void read(Bytes offset, std::span<const std::span<std::byte>> to) = 0;

  // Read calls to the system so far; a mapping makes none.
  virtual std::uint64_t requests() const = 0;

  // Lets go of what this process holds of [begin, end) in memory without having copied it: the pages of a
  // mapping, which the page cache cannot drop while they are mapped.  They can be read again.
  virtual void let_go(Bytes /*begin*/, Bytes /*end*/) {}
};

// Names what lies at an offset of the file, for messages: "tensor 'x'".
using DescribeOffset = std::function<std::string(Bytes offset)>;
// Takes one line for each kind of refusal that was worked around (RWF_DONTCACHE unknown, O_DIRECT refused in
// the middle of a file, …); called once a kind by each reader, from the thread whose read it was.
using Warn = std::function<void(const std::string&)>;

// `file` must outlive the reader.  For `direct`: Error(io) naming the file system and --read-backend pread if
// the file cannot be opened so or its first read is refused.  For `mmap`: Error(io) as Mapping has it.
// `size`: what the file must have, as its header was checked against; without it, what it has now.
std::unique_ptr<ShardReader> open_shard_reader(ReadWay way, const File& file, DescribeOffset describe,
                                               Warn warn, std::optional<Bytes> size = {});

}  // namespace sluice::bytes
