#pragma once
// The system calls on files and memory that can fail while running, as a table: the seam at which tests
// inject faults. Set it before threads start; reading it is free of locks.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cstddef>

namespace sluice {

// RWF_DONTCACHE, Linux 6.14; older headers have no name for it.
inline constexpr int kReadUncached = 0x80;

struct Syscalls {
  int (*open)(const char*, int) = [](const char* path, int flags) { return ::open(path, flags); };
  int (*statx)(int, const char*, int, unsigned, struct ::statx*) = ::statx;
  ssize_t (*pread)(int, void*, std::size_t, off_t) = ::pread;
  ssize_t (*preadv2)(int, const iovec*, int, off_t, int) = ::preadv2;
  ssize_t (*write)(int, const void*, std::size_t) = ::write;
  int (*fsync)(int) = ::fsync;
  void* (*mmap)(void*, std::size_t, int, int, int, off_t) = ::mmap;
  int (*madvise)(void*, std::size_t, int) = ::madvise;
  void (*before_thread)() = [] {};  // throws std::system_error where the system would refuse a thread
};

Syscalls& syscalls();

}  // namespace sluice
