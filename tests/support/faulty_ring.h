#pragma once
// Makes chosen calls of io_uring fail while it lives.  One at a time.

#include "bytes/read/ring_calls.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>

namespace sluice::test {

struct RingFaults {
  int refused = 0, buffers_refused = 0, files_refused = 0;
  int first_read = 0, last_read = 0, read_error = 0;
  std::size_t most = ~std::size_t{0};
  bool interrupts = false, busy = false;
};

class FaultyRing {
 public:
  FaultyRing() : saved_(bytes::ring_calls()) {
    faults = {};
    reads = 0;
    submits = 0;
    real = saved_;
    bytes::ring_calls() = {queue_init, register_buffers, register_files, submit, submit_and_wait, completion};
  }
  ~FaultyRing() { bytes::ring_calls() = saved_; }
  FaultyRing(const FaultyRing&) = delete;
  FaultyRing& operator=(const FaultyRing&) = delete;

  // As systems do where a policy or an old kernel forbids it.
  FaultyRing& forbid(int error) {
    faults.refused = error;
    return *this;
  }
  FaultyRing& refuse_buffers(int error) {
    faults.buffers_refused = error;
    return *this;
  }
  FaultyRing& refuse_files(int error) {
    faults.files_refused = error;
    return *this;
  }
  // Counted from 1 in the order of completions, from this object's creation on; both included.
  FaultyRing& fail_reads(int first, int last, int error) {
    faults.first_read = first;
    faults.last_read = last;
    faults.read_error = error;
    return *this;
  }
  FaultyRing& move_at_most(std::size_t bytes) {
    faults.most = bytes;
    return *this;
  }
  // Two of three reads come back undone: interrupted, or to be asked for again.
  FaultyRing& interrupt_often() {
    faults.interrupts = true;
    return *this;
  }
  // Two of three times the kernel takes no requests.
  FaultyRing& be_busy() {
    faults.busy = true;
    return *this;
  }

  int completions() const { return reads; }

 private:
  static inline RingFaults faults;
  static inline int reads, submits;
  static inline bytes::RingCalls real;

  static int queue_init(unsigned entries, ::io_uring* ring, unsigned flags) {
    return faults.refused != 0 ? -faults.refused : real.queue_init(entries, ring, flags);
  }
  static int register_buffers(::io_uring* ring, const iovec* buffers, unsigned count) {
    return faults.buffers_refused != 0 ? -faults.buffers_refused
                                       : real.register_buffers(ring, buffers, count);
  }
  static int register_files(::io_uring* ring, const int* descriptors, unsigned count) {
    return faults.files_refused != 0 ? -faults.files_refused : real.register_files(ring, descriptors, count);
  }
  static int submit(::io_uring* ring) {
    int error = trouble();
    return error != 0 ? -error : real.submit(ring);
  }
  static int submit_and_wait(::io_uring* ring, unsigned completions) {
    int error = trouble();
    return error != 0 ? -error : real.submit_and_wait(ring, completions);
  }
  static int trouble() {
    constexpr int kTroubles[] = {EINTR, EAGAIN, 0};
    return faults.busy ? kTroubles[submits++ % 3] : 0;
  }
  // What was not to be moved is spoilt again.
  static int completion(int result, std::span<std::byte> to) {
    constexpr int kInterruptions[] = {0, -EINTR, -EAGAIN};
    int keep = result;
    int number = ++reads;
    if (faults.interrupts && number % 3 != 0) keep = kInterruptions[number % 3];
    if (faults.first_read <= number && number <= faults.last_read) keep = -faults.read_error;
    if (keep > 0) keep = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(keep), faults.most));
    for (int i = std::max(keep, 0); i < result; ++i) to[static_cast<std::size_t>(i)] = std::byte{0xee};
    return keep;
  }

  bytes::RingCalls saved_;
};

}  // namespace sluice::test
