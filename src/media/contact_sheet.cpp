#include "media/contact_sheet.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace sluice::media {
namespace {

void place(const RgbFrame& frame, int top, int left, RgbImage& sheet) {
  std::size_t row_bytes = std::size_t{3} * frame.width;
  for (int row = 0; row < frame.height; ++row) {
    std::size_t to = 3 * (static_cast<std::size_t>(top + row) * sheet.width + left);
    std::copy_n(frame.pixels.begin() + row * row_bytes, row_bytes, sheet.pixels.begin() + to);
  }
}

}  // namespace

RgbImage make_contact_sheet(std::span<const RgbFrame> frames, int columns) {
  if (frames.empty() || columns <= 0) {
    throw Error(ErrorKind::internal,
                fmt::format("a contact sheet of {} frames in {} columns", frames.size(), columns));
  }
  const RgbFrame& first = frames.front();
  int count = static_cast<int>(frames.size());
  int rows = (count + columns - 1) / columns;
  RgbImage sheet{.height = rows * first.height, .width = columns * first.width, .pixels = {}};
  sheet.pixels.resize(std::size_t{3} * sheet.height * sheet.width);
  for (int i = 0; i < count; ++i) {
    const RgbFrame& frame = frames[i];
    if (!frame.is_whole() || frame.width != first.width || frame.height != first.height) {
      throw Error(ErrorKind::internal, fmt::format("contact sheet: frame {} is {} x {}, the first {} x {}", i,
                                                   frame.width, frame.height, first.width, first.height));
    }
    place(frame, i / columns * first.height, i % columns * first.width, sheet);
  }
  return sheet;
}

}  // namespace sluice::media
