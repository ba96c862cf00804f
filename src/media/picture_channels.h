#pragma once
// From a decoded picture to rows of sRGB: grey and inks (CMYK) to RGB, through the picture's colour profile
// where it has one, more bits to 8, alpha over black.  Borrows the frame.

#include "media/colour_profile.h"
#include "media/frame_rows.h"
#include "media/picture_header.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct AVFrame;

namespace sluice::media {

enum class InkCoding {
  none,      // no CMYK
  made_rgb,  // libav has made RGB of it (TIFF)
  stored,    // four planes of light, as Adobe stores inks: 255 is no ink
  as_ycck,   // cyan, magenta and yellow as YCbCr
};

// How a CMYK JPEG stores its inks.  libav would turn them into RGB by the plain formula before a profile
// could be asked; it does so by Adobe's marker and by components named C, M, Y and K, which are therefore
// overwritten in `file`.
InkCoding take_ink_coding(const PictureHeader& header, std::span<std::byte> file);

class PictureChannels {
 public:
  PictureChannels(const AVFrame& frame, InkCoding inks, const std::filesystem::path& path);

  void row(int row, std::span<std::uint8_t> rgb);  // [width][3]

  // What was done, after the last row.
  std::vector<std::string> told() const;

 private:
  bool has_inks() const { return inks_ == InkCoding::stored || inks_ == InkCoding::as_ycck; }
  void inks(int row, std::span<std::uint8_t> rgb);
  void put_over_black(int row, std::span<std::uint8_t> rgb);

  FrameRows rows_;
  InkCoding inks_;
  std::optional<ColourProfile> profile_;
  std::vector<std::uint8_t> channels_;  // [width][1, 3 or 4] before the profile
  std::vector<std::uint8_t> plane_;     // [width]
  bool was_clear_ = false;              // some pixel let the black through
};

}  // namespace sluice::media
