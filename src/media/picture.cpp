#include "media/picture.h"

#include <sluice/error.h>
#include "base/file.h"
#include "bytes/format/impostor.h"
#include "media/frame_rows.h"
#include "media/orientation.h"
#include "media/picture_channels.h"
#include "media/picture_decoder.h"
#include "media/picture_header.h"
#include "media/stranger.h"

#include <fmt/format.h>
extern "C" {
#include <libavutil/frame.h>
}

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace sluice::media {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kMostFileBytes = GiB(1);
constexpr Wanted kPicture{"a picture", "give the picture itself: a PNG, JPEG, WebP, TIFF or BMP file"};

struct PictureFile {
  fs::path path;
  std::vector<std::byte> bytes;
  std::optional<PictureFormat> format;
  PictureHeader header;  // where the format is known
};

void refuse_other_media(const fs::path& path, std::span<const std::byte> first) {
  constexpr std::array<std::string_view, 6> kStills = {"avif", "avis", "heic", "heix", "mif1", "msf1"};
  refuse_stranger(path, kPicture);
  if (!bytes::is_video(path)) return;
  const std::string_view start(reinterpret_cast<const char*>(first.data()), first.size());
  if (std::ranges::find(kStills, start.substr(8, 4)) != kStills.end()) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: is HEIF or AVIF, which is not supported", path.string()),
                std::string(kPicture.remedy));
  }
  throw Error(ErrorKind::bad_input, fmt::format("{}: is a video, not a picture", path.string()),
              "give it with --video");
}

// The whole file, once its first bytes are not something else's.
PictureFile read_file(const fs::path& path) {
  File file = File::open(path);
  const Bytes size = file.identity().size;
  PictureFile picture{.path = path,
                      .bytes = std::vector<std::byte>(std::min<Bytes>(size, bytes::kImpostorBytes))};
  read_exact(file, picture.bytes, 0, "the first bytes");
  picture.format = recognize_picture(picture.bytes);
  if (!picture.format) refuse_other_media(path, picture.bytes);
  if (size > kMostFileBytes) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: has {}, more than the {} that a picture may have", path.string(),
                            format_bytes(size), format_bytes(kMostFileBytes)),
                "give a video with --video, or a smaller picture");
  }
  picture.bytes.resize(size);
  read_exact(file, picture.bytes, 0, "the picture");
  if (picture.format) picture.header = read_picture_header(*picture.format, picture.bytes);
  return picture;
}

bool is_small(std::int64_t width, std::int64_t height, const PictureLimits& limits) {
  return std::min(width, height) < limits.smallest_side;
}
bool is_large(std::int64_t width, std::int64_t height, const PictureLimits& limits) {
  return std::max(width, height) > limits.largest_side || width * height > limits.most_pixels;
}

void check_size(const fs::path& path, std::int64_t width, std::int64_t height, const PictureLimits& limits) {
  if (is_small(width, height, limits)) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: has {} x {} pixels, but each side must have at least {}", path.string(),
                            width, height, limits.smallest_side),
                "give a larger picture");
  }
  if (is_large(width, height, limits)) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: has {} x {} pixels, more than {} a side or {} in all", path.string(), width,
                            height, limits.largest_side, limits.most_pixels),
                "scale it down first");
  }
}

// Everything that the header refuses.
void check_header(const PictureFile& file, const PictureLimits& limits) {
  const PictureHeader& header = file.header;
  const std::string name = file.path.string();
  if (header.width > 0 && header.height > 0) check_size(file.path, header.width, header.height, limits);
  if (header.frames > 1) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: is an animation of {} frames, not a picture", name, header.frames),
                header.format == PictureFormat::webp
                    ? "save one frame as a picture, or all as a video"
                    : "give it with --video, or save one frame as a picture");
  }
  if (!header.whole || header.width <= 0 || header.height <= 0) {
    throw Error(ErrorKind::corrupt_file,
                fmt::format("{}: the {} picture is cut short or damaged: {} bytes and no end", name,
                            format_name(*file.format), file.bytes.size()),
                "fetch or save the file again");
  }
}

EncodedPicture encoded(const PictureFile& file) {
  return {.path = file.path, .bytes = file.bytes, .format = file.format};
}

DecodedPicture decode_within(const PictureFile& file, const PictureLimits& limits) {
  DecodedPicture decoded = decode_picture(encoded(file), [&](int width, int height) {
    return !is_small(width, height, limits) && !is_large(width, height, limits);
  });
  check_size(file.path, decoded.width, decoded.height, limits);
  return decoded;
}

std::string told_orientation(const Orientation& orientation) {
  return describe(orientation) + " (EXIF)";
}

}  // namespace

PictureInfo probe_picture(const fs::path& path, const PictureLimits& limits) {
  const PictureFile file = read_file(path);
  if (!file.format) {
    const DecodedPicture found = decode_picture(encoded(file), [](int, int) { return false; });
    check_size(path, found.width, found.height, limits);
    return {.width = found.width, .height = found.height, .codec = found.codec};
  }
  check_header(file, limits);
  PictureInfo info{.width = static_cast<int>(file.header.width),
                   .height = static_cast<int>(file.header.height),
                   .codec = std::string(format_name(*file.format))};
  if (orientation_of_exif(file.header.orientation).transposed) std::swap(info.width, info.height);
  return info;
}

Picture read_picture(const fs::path& path, const PictureLimits& limits) {
  PictureFile file = read_file(path);
  if (file.format) check_header(file, limits);
  const InkCoding inks = take_ink_coding(file.header, file.bytes);
  const DecodedPicture decoded = decode_within(file, limits);
  const int width = decoded.frame->width, height = decoded.frame->height;

  PictureChannels channels(*decoded.frame, inks, path);
  const Orientation orientation = orientation_of_exif(file.header.orientation);
  Picture picture{.width = orientation.transposed ? height : width,
                  .height = orientation.transposed ? width : height,
                  .pixels = std::vector<std::uint8_t>(std::size_t{3} * width * height),
                  .conversions = {}};
  std::vector<std::uint8_t> rgb(std::size_t{3} * width);
  for (int row = 0; row < height; ++row) {
    channels.row(row, rgb);
    place_row(rgb, row, width, height, orientation, picture.pixels);
  }
  picture.conversions = channels.told();
  if (orientation != Orientation{}) picture.conversions.push_back(told_orientation(orientation));
  if (file.header.pages > 1)
    picture.conversions.push_back(fmt::format("the first of {} pages", file.header.pages));
  return picture;
}

}  // namespace sluice::media
