#pragma once
// Frames that wait on disk until they are wanted: a file without a name, so that nothing of it outlives the
// process.  What is written is let go of by the page cache again.  One thread.

#include "base/file.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace sluice::ltx2 {

class FrameStore {
 public:
  // Error(io) if the folder takes no file.
  explicit FrameStore(const std::filesystem::path& folder);

  // Appends frames [batch, channels, n, height, width] to `track`; all of a track have one size and dtype.
  void append(std::size_t track, const at::Tensor& frames);

  // [batch, channels, 1, height, width].
  at::Tensor frame(std::size_t track, std::int64_t index) const;

 private:
  struct Track {
    std::vector<std::int64_t> shape;  // of a frame
    at::ScalarType dtype = at::kFloat;
    Bytes frame_bytes = 0;
    std::vector<Bytes> offsets;  // of its frames in the file
  };

  File file_;
  std::vector<Track> tracks_;
  Bytes end_ = 0;
};

}  // namespace sluice::ltx2
