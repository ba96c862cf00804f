#pragma once
// A picture from a file as 8-bit sRGB, upright: PNG, JPEG, WebP, TIFF, BMP and whatever else libav decodes.
// Orientation (EXIF) is applied, a colour profile is converted to sRGB, alpha is composited over black, grey
// becomes three equal channels, 16 bits become 8, CMYK becomes RGB (of a JPEG through its profile, else and
// of a TIFF by the plain formula); what was done is told.  The file is known by its content, never by its
// name. PNG's gAMA and cHRM are not looked at, nor are printing densities: pixels are square.  JPEG comes
// within 2 levels of libjpeg's, a pixel here and there within 3.

#include "media/rgb_frame.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::media {

struct PictureLimits {
  int smallest_side = 16;  // pixels
  int largest_side = 16384;
  std::int64_t most_pixels = std::int64_t{100} << 20;
};

struct PictureInfo {
  int width = 0;  // upright
  int height = 0;
  std::string codec;  // "png"
};

// From the file's header and its first bytes.  Error(bad_input) names the file and what is wrong: missing, no
// picture, smaller or larger than the limits (both numbers; before anything of that size is decoded),
// animated (with the number of frames where it is known), a video.
PictureInfo probe_picture(const std::filesystem::path& path, const PictureLimits& limits = {});

struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;      // [height][width][3]
  std::vector<std::string> conversions;  // "turned by 90° (EXIF)", "alpha over black", "profile 'Display P3'"

  RgbFrame view() const { return {height, width, pixels}; }
};

// As probe_picture(), and Error(corrupt_file) for a picture that is cut short or damaged.
Picture read_picture(const std::filesystem::path& path, const PictureLimits& limits = {});

// One H.264 round trip (libx264, veryfast, yuv420p, at `crf`), so that a picture looks like a frame of the
// videos that the model learned from; sides are cut to even numbers.  crf 0: the picture as it is.  Source:
// apply_image_conditioning_crf of diffusers' LTX2 pipelines.
Picture recompress(const Picture& picture, int crf);

}  // namespace sluice::media
