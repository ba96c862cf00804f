#pragma once
// One picture as everybody here passes it on: 8-bit RGB, interleaved, rows from top to bottom without gaps.
// A view: the pixels belong to the caller and must outlive it.

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::media {

struct RgbFrame {
  int height = 0;
  int width = 0;
  std::span<const std::uint8_t> pixels;  // [height][width][3]

  bool is_whole() const {
    return height > 0 && width > 0 &&
           pixels.size() == std::size_t{3} * static_cast<std::size_t>(height) * width;
  }
};

}  // namespace sluice::media
