#include "media/picture_header.h"

#include "media/byte_cursor.h"
#include "media/exif.h"

#include <string>

namespace sluice::media {
namespace {

using File = std::span<const std::byte>;

constexpr std::string_view kPngMark("\x89PNG\r\n\x1a\n", 8);

int exif_orientation(std::string_view block) {
  constexpr std::string_view kMark("Exif\0\0", 6);
  if (block.starts_with(kMark)) block.remove_prefix(kMark.size());
  return read_tiff_directory(std::as_bytes(std::span(block))).orientation;
}

PictureHeader read_png(File file) {
  PictureHeader header{.whole = false};
  ByteCursor cursor(file, ByteOrder::big);
  cursor.seek(kPngMark.size());
  while (!cursor.ran_out()) {
    const std::uint32_t size = cursor.u32();
    const std::string_view kind = cursor.text(4);
    const std::size_t next = cursor.at() + size + 4;  // behind the check sum
    if (kind == "IHDR") {
      header.width = cursor.u32();
      header.height = cursor.u32();
    }
    if (kind == "acTL") header.frames = cursor.u32();
    if (kind == "eXIf") header.orientation = exif_orientation(cursor.text(size));
    cursor.seek(next);
    if (kind == "IEND") {
      header.whole = !cursor.ran_out();
      break;
    }
  }
  return header;
}

bool is_start_of_frame(std::uint32_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

bool stands_alone(std::uint32_t marker) {  // without a length behind it
  return (marker >= 0xd0 && marker <= 0xd8) || marker == 0x01;
}

// To the next marker: 0xff and what is neither a stuffed zero nor filling.
std::uint32_t next_marker(ByteCursor& cursor) {
  while (!cursor.ran_out()) {
    if (cursor.u8() != 0xff) continue;
    std::uint32_t marker = cursor.u8();
    while (marker == 0xff) marker = cursor.u8();
    if (marker != 0) return marker;
  }
  return 0;
}

void take_start_of_frame(ByteCursor cursor, PictureHeader& header) {
  cursor.skip(1);  // bits a sample
  header.height = cursor.u16();
  header.width = cursor.u16();
  const std::uint32_t components = cursor.u8();
  header.cmyk = components == 4;
  for (std::size_t i = 0; i < components; ++i) header.component_numbers_at.push_back(cursor.at() + 3 * i);
}

void take_start_of_scan(ByteCursor cursor, PictureHeader& header) {
  const std::uint32_t components = cursor.u8();
  for (std::size_t i = 0; i < components; ++i) header.component_numbers_at.push_back(cursor.at() + 2 * i);
}

void take_jpeg_segment(std::uint32_t marker, std::size_t size, ByteCursor cursor, PictureHeader& header) {
  const std::size_t begin = cursor.at();
  if (is_start_of_frame(marker)) take_start_of_frame(cursor, header);
  if (marker == 0xda) take_start_of_scan(cursor, header);
  const std::string_view content = cursor.text(size);
  if (marker == 0xe1 && content.starts_with("Exif")) header.orientation = exif_orientation(content);
  constexpr std::size_t kTransform = 11;  // "Adobe", version, two flags of two bytes
  if (marker == 0xee && content.starts_with("Adobe") && size > kTransform)
    header.adobe_transform_at = begin + kTransform;
}

PictureHeader read_jpeg(File file) {
  PictureHeader header{.whole = false};
  ByteCursor cursor(file, ByteOrder::big);
  while (!cursor.ran_out()) {
    const std::uint32_t marker = next_marker(cursor);
    if (marker == 0xd9) header.whole = true;
    if (marker == 0xd9 || marker == 0) break;
    if (stands_alone(marker)) continue;
    const std::uint32_t size = cursor.u16();
    if (size < 2) break;
    take_jpeg_segment(marker, size - 2, cursor, header);
    cursor.skip(size - 2);
  }
  return header;
}

// A chain of blocks, each with its length in front, up to an empty one.
void skip_gif_blocks(ByteCursor& cursor) {
  while (!cursor.ran_out()) {
    const std::uint32_t size = cursor.u8();
    if (size == 0) return;
    cursor.skip(size);
  }
}

void skip_gif_colours(ByteCursor& cursor, std::uint32_t flags) {
  if ((flags & 0x80) != 0) cursor.skip(std::size_t{3} << ((flags & 7) + 1));
}

PictureHeader read_gif(File file) {
  PictureHeader header{.frames = 0, .whole = false};
  ByteCursor cursor(file, ByteOrder::little);
  cursor.seek(6);
  header.width = cursor.u16();
  header.height = cursor.u16();
  const std::uint32_t flags = cursor.u8();
  cursor.skip(2);
  skip_gif_colours(cursor, flags);
  while (!cursor.ran_out()) {
    const std::uint32_t block = cursor.u8();
    if (block == ';' && !cursor.ran_out()) {
      header.whole = true;
      break;
    }
    if (block == ',') {
      cursor.skip(8);
      skip_gif_colours(cursor, cursor.u8());
      ++header.frames;
    } else if (block != '!') {
      break;
    }
    cursor.skip(1);  // the label of an extension, or an image's code size
    skip_gif_blocks(cursor);
  }
  return header;
}

void take_webp_chunk(std::string_view kind, std::size_t size, ByteCursor cursor, PictureHeader& header) {
  constexpr std::uint32_t kSide = 0x3fff;
  if (kind == "VP8X") {
    cursor.skip(4);
    header.width = cursor.u24() + 1;
    header.height = cursor.u24() + 1;
  } else if (kind == "VP8 " && header.width == 0) {
    cursor.skip(6);
    header.width = cursor.u16() & kSide;
    header.height = cursor.u16() & kSide;
  } else if (kind == "VP8L" && header.width == 0) {
    cursor.skip(1);
    const std::uint32_t sides = cursor.u32();
    header.width = (sides & kSide) + 1;
    header.height = ((sides >> 14) & kSide) + 1;
  } else if (kind == "EXIF") {
    header.orientation = exif_orientation(cursor.text(size));
  } else if (kind == "ANMF") {
    ++header.frames;
  }
}

PictureHeader read_webp(File file) {
  PictureHeader header{.frames = 0};
  ByteCursor cursor(file, ByteOrder::little);
  cursor.seek(4);
  const std::size_t end = std::size_t{cursor.u32()} + 8;
  cursor.skip(4);
  while (cursor.at() + 8 <= end && !cursor.ran_out()) {
    const std::string_view kind = cursor.text(4);
    const std::size_t size = cursor.u32();
    take_webp_chunk(kind, size, cursor, header);
    cursor.skip(size + size % 2);
  }
  header.whole = end <= file.size();
  if (header.frames == 0) header.frames = 1;
  return header;
}

PictureHeader read_bmp(File file) {
  PictureHeader header;
  ByteCursor cursor(file, ByteOrder::little);
  cursor.seek(14);
  const bool is_os2 = cursor.u32() == 12;
  auto side = [&] {
    return is_os2 ? std::int64_t{cursor.u16()} : std::int64_t{static_cast<std::int32_t>(cursor.u32())};
  };
  header.width = side();
  header.height = side();
  if (header.height < 0) header.height = -header.height;  // rows from top to bottom
  return header;
}

PictureHeader read_tiff(File file) {
  constexpr int kSeparated = 5;
  const TiffDirectory directory = read_tiff_directory(file);
  return {.width = directory.width,
          .height = directory.height,
          .orientation = directory.orientation,
          .pages = directory.pages,
          .cmyk = directory.photometric == kSeparated};
}

}  // namespace

std::optional<PictureFormat> recognize_picture(std::span<const std::byte> first) {
  const std::string_view start(reinterpret_cast<const char*>(first.data()), first.size());
  if (start.starts_with(kPngMark)) return PictureFormat::png;
  if (start.starts_with("\xff\xd8\xff")) return PictureFormat::jpeg;
  if (start.starts_with("GIF87a") || start.starts_with("GIF89a")) return PictureFormat::gif;
  if (start.starts_with("RIFF") && start.size() >= 12 && start.substr(8, 4) == "WEBP")
    return PictureFormat::webp;
  if (start.starts_with(std::string_view("II*\0", 4)) || start.starts_with(std::string_view("MM\0*", 4)))
    return PictureFormat::tiff;
  if (start.starts_with("BM") && start.size() >= 14 && start.substr(6, 4) == std::string_view("\0\0\0\0", 4))
    return PictureFormat::bmp;
  return std::nullopt;
}

std::string_view format_name(PictureFormat format) {
  switch (format) {
    case PictureFormat::png:
      return "png";
    case PictureFormat::jpeg:
      return "jpeg";
    case PictureFormat::webp:
      return "webp";
    case PictureFormat::gif:
      return "gif";
    case PictureFormat::tiff:
      return "tiff";
    case PictureFormat::bmp:
      return "bmp";
  }
  return "";
}

PictureHeader read_picture_header(PictureFormat format, File file) {
  const auto read = [&]() -> PictureHeader {
    switch (format) {
      case PictureFormat::png:
        return read_png(file);
      case PictureFormat::jpeg:
        return read_jpeg(file);
      case PictureFormat::webp:
        return read_webp(file);
      case PictureFormat::gif:
        return read_gif(file);
      case PictureFormat::tiff:
        return read_tiff(file);
      case PictureFormat::bmp:
        return read_bmp(file);
    }
    return {};
  };
  PictureHeader header = read();
  header.format = format;
  return header;
}

}  // namespace sluice::media
