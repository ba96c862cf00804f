#pragma once
// A checkpoint to measure with: made of numbers that no disk can compress, gone with the object.

#include <sluice/progress.h>
#include <sluice/units.h>

#include <filesystem>

namespace sluice::cli {

class BenchFile {
 public:
  // About `size` bytes in tensors as a transformer has them, flushed to disk.  Error(does_not_fit) if there
  // is no room for it, Error(io), Error(interrupted).
  BenchFile(const std::filesystem::path& folder, Bytes size, Progress& progress, const CancelToken& cancel);
  ~BenchFile();
  BenchFile(const BenchFile&) = delete;
  BenchFile& operator=(const BenchFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace sluice::cli
