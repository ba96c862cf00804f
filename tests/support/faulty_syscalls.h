#pragma once
// Makes chosen system calls fail while it lives.  One at a time.

#include "base/syscalls.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>

namespace sluice::test {

struct SyscallFaults {
  int read_number = 0, read_error = 0, write_number = 0, write_error = 0, mmap_error = 0, fsync_error = 0;
  std::size_t most = ~std::size_t{0};
  bool interrupts = false;
};

class FaultySyscalls {
 public:
  FaultySyscalls() : saved_(syscalls()) {
    faults = {};
    reads = 0;
    writes = 0;
    bytes_read = 0;
    syscalls().pread = pread;
    syscalls().write = write;
  }
  ~FaultySyscalls() { syscalls() = saved_; }
  FaultySyscalls(const FaultySyscalls&) = delete;
  FaultySyscalls& operator=(const FaultySyscalls&) = delete;

  // Counted from 1, from this object's creation on.
  FaultySyscalls& fail_nth_read(int n, int error) {
    faults.read_number = n;
    faults.read_error = error;
    return *this;
  }
  FaultySyscalls& fail_nth_write(int n, int error) {
    faults.write_number = n;
    faults.write_error = error;
    return *this;
  }
  // Every call moves this many bytes at most.
  FaultySyscalls& move_at_most(std::size_t bytes) {
    faults.most = bytes;
    return *this;
  }
  // Every second call is interrupted by a signal.
  FaultySyscalls& interrupt_often() {
    faults.interrupts = true;
    return *this;
  }
  FaultySyscalls& fail_mmap(int error) {
    faults.mmap_error = error;
    syscalls().mmap = [](void*, std::size_t, int, int, int, off_t) {
      errno = faults.mmap_error;
      return MAP_FAILED;
    };
    return *this;
  }
  FaultySyscalls& fail_fsync(int error) {
    faults.fsync_error = error;
    syscalls().fsync = [](int) {
      errno = faults.fsync_error;
      return -1;
    };
    return *this;
  }

  std::size_t total_read() const { return bytes_read; }

 private:
  static inline SyscallFaults faults;
  static inline std::atomic<int> reads, writes;
  static inline std::atomic<std::size_t> bytes_read;

  static ssize_t pread(int descriptor, void* to, std::size_t size, off_t offset) {
    int number = ++reads;
    if (faults.interrupts && number % 2 == 1) return fail(EINTR);
    if (number == faults.read_number) return fail(faults.read_error);
    ssize_t got = ::pread(descriptor, to, std::min(size, faults.most), offset);
    if (got > 0) bytes_read += static_cast<std::size_t>(got);
    return got;
  }
  static ssize_t write(int descriptor, const void* from, std::size_t size) {
    int number = ++writes;
    if (faults.interrupts && number % 2 == 1) return fail(EINTR);
    if (number == faults.write_number) return fail(faults.write_error);
    return ::write(descriptor, from, std::min(size, faults.most));
  }
  static ssize_t fail(int error) {
    errno = error;
    return -1;
  }

  Syscalls saved_;
};

}  // namespace sluice::test
