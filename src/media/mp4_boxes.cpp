#include "media/mp4_boxes.h"

#include "base/file.h"
#include "base/text.h"
#include "media/byte_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace sluice::media {
namespace {

constexpr Bytes kHeader = 8, kLongHeader = 16;

struct Box {
  std::string kind;
  Bytes size = 0;
};

// A size of 1 means that it follows in eight bytes, 0 that the box reaches to the end of the file.
Box read_box(const File& file, Bytes at, Bytes file_size) {
  std::array<std::byte, kLongHeader> header{};
  const auto there = std::span(header).first(std::min<Bytes>(kLongHeader, file_size - at));
  read_exact(file, there, at, "an mp4 box");
  ByteCursor cursor(header, ByteOrder::big);
  Box box{.size = cursor.u32()};
  box.kind = cursor.text(4);
  if (box.size == 0) box.size = file_size - at;
  if (box.size == 1) {
    const Bytes high = cursor.u32();
    box.size = high << 32 | cursor.u32();
  }
  return box;
}

// Some programs leave a few bytes behind the last box.
bool is_filling(const Box& box) {
  return box.kind.size() != 4 ||
         !std::ranges::all_of(box.kind, [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
}

}  // namespace

void check_mp4_is_whole(const std::filesystem::path& path) {
  const File file = File::open(path);
  const Bytes size = file.identity().size;
  bool has_index = false;
  for (Bytes at = 0; at < size;) {
    const Box box = read_box(file, at, size);
    if (has_index && is_filling(box)) break;
    if (size - at < kHeader || box.size < kHeader || box.size > size - at) {
      throw Error(ErrorKind::corrupt_file,
                  fmt::format("{}: is cut short or damaged: its part {} wants {} at byte {} of {}",
                              path.string(), in_quotes(box.kind), format_bytes(box.size), at, size),
                  "copy or download it again; a recording that was interrupted must be repaired first");
    }
    has_index = has_index || box.kind == "moov";
    at += box.size;
  }
  if (has_index) return;
  throw Error(ErrorKind::corrupt_file,
              fmt::format("{}: is cut short: an mp4 without the index (moov) of its frames", path.string()),
              "copy or download it again; a recording that was interrupted must be repaired first");
}

}  // namespace sluice::media
