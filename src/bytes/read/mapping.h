#pragma once
// A file's bytes as read-only memory that cannot kill the process.
//
// Touching a mapped page whose file has shrunk raises SIGBUS.  The first Mapping installs one handler for the
// whole process: a fault inside one of our mappings replaces the rest of that mapping by zero pages and marks
// it damaged; any other fault goes on to the handler that was there before.  Works in every thread.

#include "base/file.h"

#include <cstddef>
#include <span>

namespace sluice::bytes {

class Mapping {
 public:
  // Maps the first `size` bytes, size > 0.  Error(io) with the limit and the remedy where the kernel refuses.
  Mapping(const File& file, Bytes size);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

  // True once a read has met bytes that the file no longer has: zeros were delivered in their place.
  bool damaged() const;

 private:
  std::span<const std::byte> bytes_;
  std::size_t slot_ = 0;  // in the registry of mappings that the handler searches
};

}  // namespace sluice::bytes
