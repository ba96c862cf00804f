#pragma once
// Writes files one after the other on a thread of its own, while the next blocks are filled: the bounded
// queue between quantizing and the disk.
//
//   DiskWriter writer({.block = MiB(8), .blocks = 4});
//   writer.begin(target);
//   std::span<std::byte> room = writer.room();   // fill some of it, then
//   writer.filled(n);
//   WrittenFile done = writer.finish();          // flushed and renamed
//
// All but its own thread's work is done by one thread.

#include <sluice/units.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace sluice::weights {

struct WrittenFile {
  Bytes size = 0;
  std::string checksum;  // XXH3-128 of the whole file
};

struct WriteBlocks {
  Bytes block = MiB(8);  // of one write; a multiple of 4096
  std::size_t blocks = 4;
  Bytes memory() const { return block * blocks; }
};

class DiskWriter {
 public:
  explicit DiskWriter(WriteBlocks blocks);
  ~DiskWriter();  // an unfinished file is removed

  // The file appears under its name when it is finished; one that is there is replaced then.  Error(io).
  void begin(const std::filesystem::path& target);

  // Where the next bytes go: never empty, waits for the disk.  Throws what went wrong with blocks before.
  std::span<std::byte> room();
  void filled(std::size_t size);
  void append(std::span<const std::byte> bytes);

  // Everything is on the disk under the file's name.
  WrittenFile finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::weights
