#pragma once
// The directories of TIFF, which EXIF uses too: entries of a number, a type and a value.

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::media {

struct TiffDirectory {
  std::int64_t width = 0;
  std::int64_t height = 0;
  int orientation = 1;     // 1 to 8; 1 where it is missing or another number
  int photometric = -1;    // 5: CMYK
  std::int64_t pages = 0;  // directories in the chain; 0: this is no TIFF
};

// `bytes`: a TIFF file, or what an EXIF block holds.  What is missing keeps its default.
TiffDirectory read_tiff_directory(std::span<const std::byte> bytes);

}  // namespace sluice::media
