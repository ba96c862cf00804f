#include "bytes/read/ring_queue.h"

#include <cerrno>

namespace sluice::bytes {
namespace {

// Before Linux 5.6 there is io_uring without this kind of read.
bool knows_reads(::io_uring* ring) {
  ::io_uring_probe* probe = ::io_uring_get_probe_ring(ring);
  const bool known = probe != nullptr && ::io_uring_opcode_supported(probe, IORING_OP_READ) != 0;
  ::io_uring_free_probe(probe);
  return known;
}

}  // namespace

RingCalls& ring_calls() {
  static RingCalls table{
      .queue_init = ::io_uring_queue_init,
      .register_buffers = ::io_uring_register_buffers,
      .register_files = ::io_uring_register_files,
      .submit = ::io_uring_submit,
      .submit_and_wait = ::io_uring_submit_and_wait,
      .completion = [](int result, std::span<std::byte>) { return result; },
  };
  return table;
}

RingQueue::RingQueue(unsigned entries) : error_(-ring_calls().queue_init(entries, &ring_, 0)) {
  if (error_ != 0 || knows_reads(&ring_)) return;
  ::io_uring_queue_exit(&ring_);
  error_ = ENOSYS;
}

RingQueue::~RingQueue() {
  if (error_ == 0) ::io_uring_queue_exit(&ring_);
}

}  // namespace sluice::bytes
