#include "media/pixels.h"

#include "media/yuv420.h"
#include "world.h"

#include <gmock/gmock.h>

#include <cfenv>
#include <limits>
#include <random>

namespace sluice::media {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint8_t> grey_codes(std::vector<float> values) {
  std::vector<std::uint8_t> rgb(3 * values.size());
  to_rgb8({.height = 1, .width = static_cast<int>(values.size()), .planes = {values, values, values}}, 0,
          rgb);
  std::vector<std::uint8_t> codes;
  for (std::size_t i = 0; i < values.size(); ++i) codes.push_back(rgb[3 * i]);
  return codes;
}

TEST(Pixels, map_minus_one_to_0_and_one_to_255_and_clamp_beyond) {
  EXPECT_THAT(grey_codes({-1.0f, 1.0f, -7.5f, 1.001f}), ElementsAre(0, 255, 0, 255));
}

TEST(Pixels, round_exact_halves_to_even) {
  // Not every code k has an f32 x with 255 (0.5 x + 0.5) = k + 0.5 exactly: those that have one are searched
  // for.
  EXPECT_THAT(grey_codes({0.0f}), ElementsAre(128));
  int halves = 0;
  for (int code = 0; code < 255; ++code) {
    float middle = (static_cast<float>(code) + 0.5f) / 255.0f * 2.0f - 1.0f;
    for (float x : {std::nextafter(middle, -2.0f), middle, std::nextafter(middle, 2.0f)}) {
      if (255.0f * (0.5f * x + 0.5f) != static_cast<float>(code) + 0.5f) continue;
      ++halves;
      EXPECT_EQ(grey_codes({x})[0], code % 2 == 0 ? code : code + 1);
    }
  }
  EXPECT_GT(halves, 50);
}

TEST(Pixels, interleave_the_three_planes) {
  std::vector<float> red = {-1, 1}, green = {1, -1}, blue = {0, 0};
  std::vector<std::uint8_t> rgb(6);

  to_rgb8({.height = 2, .width = 1, .planes = {red, green, blue}}, 0, rgb);

  EXPECT_THAT(rgb, ElementsAre(0, 255, 128, 255, 0, 128));
}

TEST(Pixels, name_the_frame_and_place_of_what_is_no_number) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> red(6), green(6), blue(6);
    green[4] = bad;
    std::vector<std::uint8_t> rgb(18);

    Error error = error_of([&] {
      to_rgb8({.height = 2, .width = 3, .planes = {red, green, blue}}, 17, rgb);
    });

    EXPECT_EQ(error.kind(), ErrorKind::non_finite);
    EXPECT_THAT(error.what(), HasSubstr("frame 17: green is"));
    EXPECT_THAT(error.what(), HasSubstr("row 1, column 1"));
  }
}

struct Yuv {
  std::vector<std::uint8_t> y, cb, cr;
};

Yuv convert(const TestImage& image) {
  std::size_t count = static_cast<std::size_t>(image.height) * image.width;
  Yuv out{.y = std::vector<std::uint8_t>(count),
          .cb = std::vector<std::uint8_t>(count / 4),
          .cr = std::vector<std::uint8_t>(count / 4)};
  to_yuv420(image.view(), {.y = {out.y.data(), image.width},
                           .cb = {out.cb.data(), image.width / 2},
                           .cr = {out.cr.data(), image.width / 2}});
  return out;
}

// The formula of BT.709 in double, at one pixel and over the mean of a square.
double luma(double red, double green, double blue) {
  return (.2126 * red + .7152 * green + .0722 * blue) / 255;
}

TEST(Yuv420, is_the_formula_of_bt709_to_half_a_code) {
  std::mt19937 random(7);
  TestImage image(32, 48);
  for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(random());

  Yuv yuv = convert(image);

  for (int row = 0; row < image.height; ++row) {
    for (int column = 0; column < image.width; ++column) {
      double y = luma(image.at(row, column, 0), image.at(row, column, 1), image.at(row, column, 2));
      EXPECT_NEAR(yuv.y[row * image.width + column], 219 * y + 16, 0.501);
    }
  }
  for (int row = 0; row < image.height / 2; ++row) {
    for (int column = 0; column < image.width / 2; ++column) {
      std::array<double, 3> mean{};
      for (int i = 0; i < 4; ++i) {
        for (int channel = 0; channel < 3; ++channel) {
          mean[channel] += image.at(2 * row + i / 2, 2 * column + i % 2, channel) / 4.0;
        }
      }
      double y = luma(mean[0], mean[1], mean[2]);
      EXPECT_NEAR(yuv.cb[row * image.width / 2 + column], 224 * (mean[2] / 255 - y) / 1.8556 + 128, 0.501);
      EXPECT_NEAR(yuv.cr[row * image.width / 2 + column], 224 * (mean[0] / 255 - y) / 1.5748 + 128, 0.501);
    }
  }
}

TEST(Yuv420, maps_every_grey_to_neutral_chroma_in_16_to_235) {
  for (int grey = 0; grey < 256; ++grey) {
    TestImage image(2, 2);
    image.fill(
        0, 0, 2,
        {static_cast<std::uint8_t>(grey), static_cast<std::uint8_t>(grey), static_cast<std::uint8_t>(grey)});

    Yuv yuv = convert(image);

    EXPECT_EQ(yuv.y[0], std::lrint(16 + 219.0 * grey / 255));
    EXPECT_EQ(yuv.cb[0], 128);
    EXPECT_EQ(yuv.cr[0], 128);
  }
}

}  // namespace
}  // namespace sluice::media
