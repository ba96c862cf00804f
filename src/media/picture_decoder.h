#pragma once
// The first picture in a file's bytes, decoded by libav from memory, so that the file's name cannot mean
// anything.

#include "media/libav.h"
#include "media/picture_header.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace sluice::media {

struct EncodedPicture {
  std::filesystem::path path;  // stands in messages
  std::span<const std::byte> bytes;
  std::optional<PictureFormat> format;  // none: libav finds out what it is
};

struct DecodedPicture {
  int width = 0;  // as stored
  int height = 0;
  std::string codec;  // "png"
  FramePtr frame;     // none where decoding was not wanted
};

// Asked with width and height before memory for the pixels is taken: whether to go on.  Must not throw.
using DecodeWanted = std::function<bool(int, int)>;

// Error(corrupt_file) where the picture is damaged or cut short; Error(bad_input) where it is a video, no
// picture, or nothing that this libav decodes.
DecodedPicture decode_picture(const EncodedPicture& encoded, const DecodeWanted& wanted);

}  // namespace sluice::media
