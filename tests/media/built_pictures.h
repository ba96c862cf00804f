#pragma once
// Picture files made byte by byte, or by libav's encoders, for tests of reading them.

#include "media/libav.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace sluice::media {

void write_bytes(const std::filesystem::path& path, std::string_view bytes);

std::string big_endian(std::uint32_t value, int size);
std::string little_endian_bytes(std::uint32_t value, int size);

// A PNG of 8-bit RGB from chunks with right check sums.
std::string png_chunk(std::string_view kind, std::string_view content);
std::string png_header(std::uint32_t width, std::uint32_t height);  // mark and IHDR
std::string with_png_chunk(const std::string& png, std::string_view kind, std::string_view content);

// What EXIF holds: one entry.
std::string exif_orientation_block(int orientation);

// `content` in a segment of that kind behind the picture's first two bytes.
std::string with_jpeg_segment(const std::string& jpeg, int marker, std::string_view content);

// A JPEG of one colour, 32 x 32, four planes: as stored, so 255 is no ink.
struct StoredInks {
  std::array<int, 4> planes;
  int adobe_transform;
  std::string names = "\1\2\3\4";  // of the components, a letter each
};
std::string four_plane_jpeg(const StoredInks& inks);

// A picture encoded by libav: "png", "mjpeg", "tiff", "bmp".
std::string encode_picture(const std::string& encoder, AVFrame& frame);

// Memory for a picture of libav's pixel format of that name, all zero.
FramePtr blank_frame(const char* pixel_format, int width, int height);

}  // namespace sluice::media
