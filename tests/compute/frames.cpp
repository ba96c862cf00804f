#include "compute/frames.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <cmath>

namespace sluice::test {

namespace fs = std::filesystem;

Frame read_frame(const fs::path& png) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_TRUE(png_image_begin_read_from_file(&image, png.c_str())) << png << image.message;
  image.format = PNG_FORMAT_RGB;
  Frame frame{.width = static_cast<int>(image.width),
              .height = static_cast<int>(image.height),
              .pixels = std::vector<std::uint8_t>(PNG_IMAGE_SIZE(image))};
  EXPECT_TRUE(png_image_finish_read(&image, nullptr, frame.pixels.data(), 0, nullptr)) << image.message;
  return frame;
}

std::vector<Frame> read_frames(const fs::path& folder) {
  std::vector<Frame> frames;
  while (true) {
    const fs::path png = folder / fmt::format("frame_{:05}.png", frames.size());
    if (!fs::exists(png)) break;
    frames.push_back(read_frame(png));
  }
  EXPECT_FALSE(frames.empty()) << folder;
  return frames;
}

double psnr(const Frame& one, const Frame& other) {
  return psnr(std::vector{one}, std::vector{other});
}

double psnr(const std::vector<Frame>& some, const std::vector<Frame>& others) {
  constexpr double kMost = 99;
  EXPECT_EQ(some.size(), others.size());
  double squares = 0, count = 0;
  for (std::size_t i = 0; i < std::min(some.size(), others.size()); ++i) {
    EXPECT_EQ(some[i].pixels.size(), others[i].pixels.size());
    for (std::size_t k = 0; k < std::min(some[i].pixels.size(), others[i].pixels.size()); ++k) {
      const double difference = double{1} * some[i].pixels[k] - others[i].pixels[k];
      squares += difference * difference;
      ++count;
    }
  }
  return squares == 0 ? kMost : std::min(kMost, 10 * std::log10(255.0 * 255.0 * count / squares));
}

}  // namespace sluice::test
