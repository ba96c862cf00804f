#pragma once
// io_uring as this library needs it: one thread, a fixed number of reads in flight, registered buffers and
// file where the system allows.

#include "base/file.h"
#include "bytes/read/shard_reader.h"

#include <sluice/units.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace sluice::bytes {

class Ring {
 public:
  // False where the kernel or a policy forbids io_uring.
  static bool possible();

  // Error(io) where the system refuses.  `pool`: buffers that most reads go to, registered with the kernel if
  // its limit of locked memory allows (else used plainly, told through `warn`).  direct: the file is opened
  // past the page cache; Error(io) as open_shard_reader has it.  `size`: as there.
  Ring(const File& file, bool direct, unsigned depth, std::span<std::byte> pool, DescribeOffset describe,
       Warn warn, std::optional<Bytes> size = {});
  ~Ring();

  ReadAlignment alignment() const;
  unsigned depth() const;
  unsigned in_flight() const;

  // Starts a read; in_flight() < depth().  As ShardReader::read for one span.
  void submit(std::uint64_t id, Bytes offset, std::span<std::byte> to);
  // Waits for the next read to be whole and returns its id.  Short reads are continued.  Errors as
  // ShardReader::read; the read that failed is over then, the others go on.
  std::uint64_t wait();

  std::uint64_t requests() const;

 private:
  struct State;
  std::unique_ptr<State> state_;  // its destructor waits for what is in flight: the kernel writes to `to`
};

}  // namespace sluice::bytes
