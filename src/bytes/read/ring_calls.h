#pragma once
// The calls of io_uring that can fail while running, as a table: the seam at which tests inject faults,
// beside base/syscalls.h.  Results as liburing has them: below 0 an error's number.

#include <sys/uio.h>
#include <cstddef>
#include <span>

struct io_uring;

namespace sluice::bytes {

struct RingCalls {
  int (*queue_init)(unsigned entries, ::io_uring* ring, unsigned flags);
  int (*register_buffers)(::io_uring* ring, const iovec* buffers, unsigned count);
  int (*register_files)(::io_uring* ring, const int* descriptors, unsigned count);
  int (*submit)(::io_uring* ring);
  int (*submit_and_wait)(::io_uring* ring, unsigned completions);
  // What became of a read into `to`: the result itself.
  int (*completion)(int result, std::span<std::byte> to);
};

RingCalls& ring_calls();

}  // namespace sluice::bytes
