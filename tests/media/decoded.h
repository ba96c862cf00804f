#pragma once
// A media file decoded whole, for comparison with what went in.

#include <array>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace sluice::media {

struct DecodedFrame {
  double seconds = 0;
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> y, cb, cr;  // rows without gaps

  // Mean colour of a square, by BT.709's formula for limited range; 0 … 255.
  std::array<double, 3> mean_rgb(int top, int left, int side) const;
};

struct DecodedMedia {
  std::vector<DecodedFrame> frames;
  std::vector<float> left, right;  // after the container's trimming
};

DecodedMedia decode(const std::filesystem::path& path);

// How far, in seconds, one stream's packets run ahead of the other's at most when read in file order.
double widest_interleaving_gap(const std::filesystem::path& path);

}  // namespace sluice::media
