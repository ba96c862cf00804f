#include "media/exif.h"

#include "media/byte_cursor.h"

#include <optional>

namespace sluice::media {
namespace {

constexpr std::int64_t kMostPages = 10'000;  // a chain of directories may run in a circle

std::optional<ByteOrder> byte_order(std::span<const std::byte> bytes) {
  ByteCursor cursor(bytes, ByteOrder::little);
  const std::string_view mark = cursor.text(4);
  if (mark == std::string_view("II*\0", 4)) return ByteOrder::little;
  if (mark == std::string_view("MM\0*", 4)) return ByteOrder::big;
  return std::nullopt;
}

// The value of an entry whose kind is SHORT or LONG; the cursor stands behind its tag.
std::int64_t entry_value(ByteCursor& cursor) {
  constexpr std::uint32_t kShort = 3;
  const std::uint32_t type = cursor.u16();
  cursor.skip(4);  // how many
  if (type != kShort) return cursor.u32();
  const std::uint32_t value = cursor.u16();
  cursor.skip(2);
  return value;
}

void take_entry(ByteCursor& cursor, TiffDirectory& directory) {
  const std::uint32_t tag = cursor.u16();
  const std::int64_t value = entry_value(cursor);
  switch (tag) {
    case 256:
      directory.width = value;
      break;
    case 257:
      directory.height = value;
      break;
    case 262:
      directory.photometric = static_cast<int>(value);
      break;
    case 274:
      directory.orientation = value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
      break;
    default:
      break;
  }
}

}  // namespace

TiffDirectory read_tiff_directory(std::span<const std::byte> bytes) {
  TiffDirectory directory;
  const std::optional<ByteOrder> order = byte_order(bytes);
  if (!order) return directory;
  ByteCursor cursor(bytes, *order);
  cursor.seek(4);
  for (std::size_t offset = cursor.u32(); offset != 0 && directory.pages < kMostPages;
       offset = cursor.u32()) {
    cursor.seek(offset);
    const std::uint32_t entries = cursor.u16();
    for (std::uint32_t entry = 0; directory.pages == 0 && entry < entries; ++entry)
      take_entry(cursor, directory);
    cursor.seek(offset + 2 + std::size_t{12} * entries);
    if (cursor.ran_out() && directory.pages > 0) break;
    ++directory.pages;
  }
  return directory;
}

}  // namespace sluice::media
