#pragma once
// What the common picture formats say about themselves before anything is decoded: size, orientation, how
// many frames, whether the file is whole.  Pure functions of the file's bytes, so that a picture of an
// impossible size or an animation is refused before a decoder sees it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::media {

enum class PictureFormat { png, jpeg, webp, gif, tiff, bmp };

// By the first 16 bytes.
std::optional<PictureFormat> recognize_picture(std::span<const std::byte> first);

std::string_view format_name(PictureFormat format);  // "png"

struct PictureHeader {
  PictureFormat format{};
  std::int64_t width = 0;  // as stored, before orientation; 0 where the file ends or breaks before its size
  std::int64_t height = 0;
  int orientation = 1;      // EXIF's, 1 to 8
  std::int64_t frames = 1;  // of an animation
  std::int64_t pages = 1;   // of a TIFF
  bool cmyk = false;
  // JPEG: where Adobe's marker says how colours are transformed (0 none, 2 YCCK), and where components are
  // numbered.
  std::optional<std::size_t> adobe_transform_at;
  std::vector<std::size_t> component_numbers_at;
  bool whole = true;  // false where the file ends before its format's own end; BMP and TIFF do not know
};

PictureHeader read_picture_header(PictureFormat format, std::span<const std::byte> file);

}  // namespace sluice::media
