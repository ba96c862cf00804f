#pragma once
// The two queues that a process shares with the kernel, owned.  One thread.

#include "bytes/read/ring_calls.h"

#include <liburing.h>

namespace sluice::bytes {

class RingQueue {
 public:
  // Empty queues with room for `entries` requests; error() tells whether the system has given them.
  explicit RingQueue(unsigned entries);
  ~RingQueue();
  RingQueue(const RingQueue&) = delete;
  RingQueue& operator=(const RingQueue&) = delete;

  int error() const { return error_; }  // 0, or the error's number
  ::io_uring* get() { return &ring_; }

  // Requests that are written down but that the kernel has not taken yet.
  unsigned not_taken() const { return ::io_uring_sq_ready(&ring_); }

 private:
  ::io_uring ring_{};
  int error_ = 0;
};

}  // namespace sluice::bytes
