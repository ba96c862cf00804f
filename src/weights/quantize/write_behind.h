#pragma once
// A file that is written past the page cache where the file system can, and else let go of behind the
// writer: what is written once is not read soon.  One thread.

#include "base/file.h"

#include <filesystem>
#include <span>

namespace sluice::weights {

class WriteBehind {
 public:
  // Addresses and sizes of blocks that go past the page cache; no device asks for more.
  static constexpr Bytes kAlignment = 4096;

  // `path`: a file that exists; `name` stands in messages.
  WriteBehind(const std::filesystem::path& path, std::filesystem::path name);

  // Appends.  All but the last block are multiples of kAlignment at multiples of it.  Error(io).
  void append(std::span<const std::byte> block);

 private:
  void write_through_cache(std::span<const std::byte> block);
  void end_direct();
  void let_go_before(Bytes end);

  bool direct_ = false;  // before file_, whose opening decides it
  File file_;
  std::filesystem::path name_;
  Bytes size_ = 0;    // written
  Bytes let_go_ = 0;  // of it, no longer in the page cache
};

}  // namespace sluice::weights
