#pragma once
// The system calls on files that can fail while running, as a table: the seam at which tests inject faults.
// Set it before threads start; reading it is free of locks.

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

namespace sluice {

struct Syscalls {
  ssize_t (*pread)(int, void*, std::size_t, off_t) = ::pread;
  ssize_t (*write)(int, const void*, std::size_t) = ::write;
  int (*fsync)(int) = ::fsync;
  void* (*mmap)(void*, std::size_t, int, int, int, off_t) = ::mmap;
};

Syscalls& syscalls();

}  // namespace sluice
