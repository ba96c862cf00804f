#pragma once
// PNG files: one picture, or a folder of numbered frames.  8-bit RGB, the same bytes for the same pixels.

#include "base/temporary_file.h"
#include "media/rgb_frame.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::media {

std::vector<std::byte> encode_png(const RgbFrame& frame);

// Appears under its name when complete.  Error(io) names the file.
void write_png(const std::filesystem::path& target, const RgbFrame& frame);

// "frame_00042.png"
std::string frame_file_name(std::int64_t index);

// Error(usage / io) at once, before any work, when `folder` cannot become a folder of frames: it is a file,
// it or its parent is missing or read-only, or it holds frames already and they may not be overwritten.
void check_frame_folder(const std::filesystem::path& folder, Existing existing);

// Frames 0, 1, 2, … of one clip.  They get their names together in finish(), and what a longer clip left
// behind goes; until then they have temporary names, and destroying the writer removes them, and the folder
// if it was made here.
class PngFolderWriter {
 public:
  // Asks check_frame_folder() and makes the folder if need be.
  PngFolderWriter(std::filesystem::path folder, Existing existing);
  ~PngFolderWriter();
  PngFolderWriter(const PngFolderWriter&) = delete;
  PngFolderWriter& operator=(const PngFolderWriter&) = delete;

  void add_frame(const RgbFrame& frame);
  void finish();

 private:
  std::filesystem::path folder_;
  bool made_folder_ = false;
  std::vector<TemporaryFile> frames_;
};

}  // namespace sluice::media
