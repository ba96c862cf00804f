#pragma once
// Video files of known content for tests of reading them: frame k is grey with the value shade(k), so that a
// frame tells which one it is, or what a painter puts there.

#include "media/libav.h"

#include <sluice/units.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sluice::media {

inline std::uint8_t shade(std::int64_t index) {
  return static_cast<std::uint8_t>(20 + 3 * index);
}

using Painter = std::function<void(AVFrame&, std::int64_t index)>;

// All planes as they are; luma becomes shade(index).
void paint_shade(AVFrame& frame, std::int64_t index);

struct BuiltVideo {
  std::string encoder = "ffv1";  // lossless
  std::string container = "matroska";
  const char* pixel_format = "yuv444p";
  int width = 32;
  int height = 16;
  std::vector<std::int64_t> times;  // in ticks
  Rational tick = {1, 24};
  bool states_rate = true;  // one frame a tick, where the container can say so
  Rational aspect = {1, 1};
  bool full_range = true;
  std::string matrix = "bt709";  // "" for none
  std::string transfer = "bt709";
  std::optional<std::array<std::int32_t, 9>> display_matrix;
  std::vector<std::pair<std::string, std::string>> options;  // of the encoder
  Painter painter = paint_shade;
};

void write_video(const std::filesystem::path& path, const BuiltVideo& video);

std::vector<std::int64_t> steady_times(int count, int ticks = 1);

}  // namespace sluice::media
