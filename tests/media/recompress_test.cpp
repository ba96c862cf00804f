#include "media/picture.h"

#include "world.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace sluice::media {
namespace {

constexpr int kWidth = 145, kHeight = 112;

int wave(int t, int period) {
  return std::abs(t % (2 * period) - period) * 255 / period;
}

// The picture of tests/fixtures/generate/recompress.py, number for number.
Picture picture() {
  Picture made{.width = kWidth, .height = kHeight, .pixels = {}, .conversions = {"alpha over black"}};
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      std::array<int, 3> rgb = {wave(x + y / 2, 70), wave(y, 90), wave(x + 2 * y, 110)};
      if (y >= 30 && y < 60 && x >= 40 && x < 90) rgb = {220, 30, 60};
      for (int channel = 0; channel < 3; ++channel) {
        std::uint32_t mixed = x * 374761393u + y * 668265263u + channel * 974711u;
        mixed = (mixed ^ (mixed >> 13)) * 1274126177u;
        const int noise = static_cast<int>((mixed >> 16) % 13) - 6;
        made.pixels.push_back(static_cast<std::uint8_t>(std::clamp(rgb[channel] + noise, 0, 255)));
      }
    }
  }
  return made;
}

double mean_difference(const Picture& a, const Picture& b) {
  const int width = std::min(a.width, b.width), height = std::min(a.height, b.height);
  double sum = 0;
  for (int y = 0; y < height; ++y)
    for (int i = 0; i < 3 * width; ++i)
      sum +=
          std::abs(a.pixels[std::size_t{3} * a.width * y + i] - b.pixels[std::size_t{3} * b.width * y + i]);
  return sum / (3.0 * width * height);
}

TEST(Recompress, gives_what_the_reference_does_but_for_the_encoders_version) {
  const Picture reference =
      read_picture(std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/fixtures/media/recompressed_crf33.png");

  const Picture ours = recompress(picture(), 33);

  ASSERT_EQ(ours.width, reference.width);
  ASSERT_EQ(ours.height, reference.height);
  // 0 with the x264 that made the file, up to 0.95 with its neighbours; another crf is 2.1 away or more
  // (32: 2.10, 34: 2.43).
  EXPECT_LT(mean_difference(ours, reference), 1.5);
  for (int crf : {32, 34}) EXPECT_GT(mean_difference(recompress(picture(), crf), reference), 1.5) << crf;
}

TEST(Recompress, loses_more_the_higher_the_crf) {
  const Picture source = picture();

  const double at_18 = mean_difference(recompress(source, 18), source),
               at_33 = mean_difference(recompress(source, 33), source);

  EXPECT_LT(at_18, 4);
  EXPECT_GT(at_33, at_18 * 1.1);
}

TEST(Recompress, cuts_odd_sides_and_keeps_what_was_told) {
  Picture source = picture();
  source.height = 111;
  source.pixels.resize(std::size_t{3} * kWidth * 111);

  const Picture result = recompress(source, 33);

  EXPECT_EQ(result.width, 144);
  EXPECT_EQ(result.height, 110);
  EXPECT_TRUE(result.view().is_whole());
  EXPECT_EQ(result.conversions, source.conversions);
}

TEST(Recompress, at_crf_0_is_the_picture_itself) {
  const Picture source = picture();

  const Picture result = recompress(source, 0);

  EXPECT_EQ(result.width, kWidth);
  EXPECT_EQ(result.pixels, source.pixels);
}

TEST(Recompress, gives_the_same_pixels_each_time) {
  EXPECT_EQ(recompress(picture(), 33).pixels, recompress(picture(), 33).pixels);
}

}  // namespace
}  // namespace sluice::media
