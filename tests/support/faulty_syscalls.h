#pragma once
// Makes chosen system calls fail while it lives.  One at a time.

#include "base/syscalls.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <system_error>

namespace sluice::test {

struct SyscallFaults {
  int read_number = 0, read_error = 0, write_number = 0, write_error = 0, mmap_error = 0, fsync_error = 0;
  int madvise_error = 0;
  int open_error = 0, uncached_error = 0, direct_open_error = 0, direct_read_error = 0;
  bool tells_direct_alignment = true;
  unsigned direct_alignment = 0;  // 0: as the system says
  int first_refused_thread = 0;
  int action_number = 0;
  std::function<void()> action;
  std::size_t most = ~std::size_t{0};
  bool interrupts = false;
};

class FaultySyscalls {
 public:
  FaultySyscalls() : saved_(syscalls()) {
    faults = {};
    reads = 0;
    writes = 0;
    threads = 0;
    bytes_read = 0;
    for (auto& descriptor : is_direct) descriptor = false;
    syscalls().open = open;
    syscalls().statx = statx;
    syscalls().pread = pread;
    syscalls().preadv2 = preadv2;
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
  // Does something else first, for instance to the file.
  FaultySyscalls& before_nth_read(int n, std::function<void()> action) {
    faults.action_number = n;
    faults.action = std::move(action);
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
  // Every file.
  FaultySyscalls& refuse_open(int error) {
    faults.open_error = error;
    return *this;
  }
  // The nth thread that is started from now on, and all after it.
  FaultySyscalls& refuse_threads_from(int n) {
    faults.first_refused_thread = n;
    syscalls().before_thread = [] {
      if (++threads >= faults.first_refused_thread)
        throw std::system_error(EAGAIN, std::generic_category(), "no thread");
    };
    return *this;
  }
  // Reads that ask to leave nothing in the page cache.
  FaultySyscalls& refuse_uncached(int error) {
    faults.uncached_error = error;
    return *this;
  }
  FaultySyscalls& refuse_direct_open(int error) {
    faults.direct_open_error = error;
    return *this;
  }
  FaultySyscalls& refuse_direct_reads(int error) {
    faults.direct_read_error = error;
    return *this;
  }
  // As kernels do that cannot say what direct reads must be multiples of.
  FaultySyscalls& hide_direct_alignment() {
    faults.tells_direct_alignment = false;
    return *this;
  }
  // As if the file system took direct reads that are multiples of `bytes`, and no others; whatever the real
  // one can.
  FaultySyscalls& direct_alignment(unsigned bytes) {
    faults.direct_alignment = bytes;
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
  FaultySyscalls& fail_madvise(int error) {
    faults.madvise_error = error;
    syscalls().madvise = [](void*, std::size_t, int) {
      errno = faults.madvise_error;
      return -1;
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
  int read_calls() const { return reads; }
  int threads_asked_for() const { return threads; }  // since refuse_threads_from()

 private:
  static inline SyscallFaults faults;
  static inline std::atomic<int> reads, writes, threads;
  static inline std::atomic<std::size_t> bytes_read;
  static inline std::array<std::atomic<bool>, 4096> is_direct;  // by descriptor

  static int open(const char* path, int flags) {
    const bool direct = (flags & O_DIRECT) != 0;
    if (faults.open_error != 0) return fail(faults.open_error);
    if (faults.direct_open_error != 0 && direct) return fail(faults.direct_open_error);
    if (faults.direct_alignment != 0) flags &= ~O_DIRECT;
    int descriptor = ::open(path, flags);
    if (descriptor >= 0) is_direct.at(static_cast<std::size_t>(descriptor)) = direct;
    return descriptor;
  }
  static int statx(int descriptor, const char* path, int flags, unsigned mask, struct ::statx* status) {
    constexpr unsigned kDirectAlignment = 0x2000;
    constexpr std::size_t kPlaceOfIt = 0x98;
    int result = ::statx(descriptor, path, flags, mask, status);
    if (!faults.tells_direct_alignment) status->stx_mask &= ~kDirectAlignment;
    if (faults.tells_direct_alignment && faults.direct_alignment != 0) {
      status->stx_mask |= kDirectAlignment;
      const unsigned both[] = {faults.direct_alignment, faults.direct_alignment};
      std::memcpy(reinterpret_cast<char*>(status) + kPlaceOfIt, both, sizeof both);
    }
    return result;
  }
  static ssize_t pread(int descriptor, void* to, std::size_t size, off_t offset) {
    const iovec piece{to, size};
    return preadv2(descriptor, &piece, 1, offset, 0);
  }
  static ssize_t preadv2(int descriptor, const iovec* pieces, int count, off_t offset, int flags) {
    int number = ++reads;
    if (number == faults.action_number) faults.action();
    if (faults.interrupts && number % 2 == 1) return fail(EINTR);
    if (number == faults.read_number) return fail(faults.read_error);
    if (faults.uncached_error != 0 && (flags & kReadUncached) != 0) return fail(faults.uncached_error);
    if (is_direct.at(static_cast<std::size_t>(descriptor))) {
      if (faults.direct_read_error != 0) return fail(faults.direct_read_error);
      if (!is_aligned(pieces, count, offset)) return fail(EINVAL);
    }
    ssize_t got = ::preadv2(descriptor, pieces, count, offset, flags);
    if (got > 0) got = cut(pieces, got);
    if (got > 0) bytes_read += static_cast<std::size_t>(got);
    return got;
  }
  static bool is_aligned(const iovec* pieces, int count, off_t offset) {
    if (faults.direct_alignment == 0) return true;
    std::size_t all = static_cast<std::size_t>(offset);
    for (int i = 0; i < count; ++i)
      all |= reinterpret_cast<std::size_t>(pieces[i].iov_base) | pieces[i].iov_len;
    return all % faults.direct_alignment == 0;
  }
  // A direct read must be asked for whole: what was not to be moved is spoilt again.
  static ssize_t cut(const iovec* pieces, ssize_t got) {
    auto keep = std::min(static_cast<std::size_t>(got), faults.most);
    std::size_t left = static_cast<std::size_t>(got), seen = 0;
    for (; left > 0; ++pieces) {
      std::size_t here = std::min(pieces->iov_len, left);
      std::size_t kept = std::min(here, keep - std::min(keep, seen));
      std::memset(static_cast<char*>(pieces->iov_base) + kept, 0xee, here - kept);
      left -= here;
      seen += here;
    }
    return static_cast<ssize_t>(keep);
  }
  static ssize_t write(int descriptor, const void* from, std::size_t size) {
    int number = ++writes;
    if (faults.interrupts && number % 2 == 1) return fail(EINTR);
    if (number == faults.write_number) return fail(faults.write_error);
    return ::write(descriptor, from, std::min(size, faults.most));
  }
  static int fail(int error) {
    errno = error;
    return -1;
  }

  Syscalls saved_;
};

}  // namespace sluice::test
