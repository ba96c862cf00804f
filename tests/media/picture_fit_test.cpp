#include "media/picture_fit.h"

#include "world.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace sluice::media {
namespace {

std::vector<float> fitted(const TestImage& image, Fit fit, FitSize size) {
  std::vector<float> planes(std::size_t{3} * size.width * size.height);
  fit_picture(image.view(), fit, size, planes);
  return planes;
}

// Bilinear between pixel centres in f64, at pixel (x, y) of a scaled picture.
double plain(TestImage& image, FitSize scaled, int x, int y, int channel) {
  const auto source = [](int at, int from, int to) { return std::max((at + 0.5) * from / to - 0.5, 0.0); };
  const double sx = source(x, image.width, scaled.width), sy = source(y, image.height, scaled.height);
  const int x0 = static_cast<int>(sx), y0 = static_cast<int>(sy);
  const int x1 = std::min(x0 + 1, image.width - 1), y1 = std::min(y0 + 1, image.height - 1);
  const double above = image.at(y0, x0, channel) * (1 - (sx - x0)) + image.at(y0, x1, channel) * (sx - x0);
  const double below = image.at(y1, x0, channel) * (1 - (sx - x0)) + image.at(y1, x1, channel) * (sx - x0);
  return (above * (1 - (sy - y0)) + below * (sy - y0)) / 127.5 - 1;
}

TEST(PictureFit, crop_is_the_middle_of_the_covering_picture) {
  TestImage image = gradient(37, 61, 3);
  for (const FitSize size : {FitSize{64, 32}, FitSize{32, 96}, FitSize{20, 11}}) {
    const double scale = std::max(size.height / 37.0, size.width / 61.0);
    const FitSize scaled{static_cast<int>(std::ceil(61 * scale)), static_cast<int>(std::ceil(37 * scale))};
    const int left = (scaled.width - size.width) / 2, top = (scaled.height - size.height) / 2;

    const std::vector<float> planes = fitted(image, Fit::crop, size);

    for (int channel = 0, at = 0; channel < 3; ++channel)
      for (int y = 0; y < size.height; ++y)
        for (int x = 0; x < size.width; ++x, ++at)
          ASSERT_NEAR(planes[at], plain(image, scaled, x + left, y + top, channel), 2e-5) << x << ", " << y;
  }
}

TEST(PictureFit, stretch_takes_each_side_by_itself) {
  TestImage image = gradient(20, 30, 1);

  const std::vector<float> planes = fitted(image, Fit::stretch, {.width = 17, .height = 41});

  for (int channel = 0, at = 0; channel < 3; ++channel)
    for (int y = 0; y < 41; ++y)
      for (int x = 0; x < 17; ++x, ++at) ASSERT_NEAR(planes[at], plain(image, {17, 41}, x, y, channel), 2e-5);
}

TEST(PictureFit, pad_puts_black_around_the_whole_picture) {
  TestImage image = gradient(20, 40, 1);

  const std::vector<float> planes = fitted(image, Fit::pad, {.width = 64, .height = 64});

  for (int y = 0; y < 64; ++y) {
    const bool is_bar = y < 16 || y >= 48;
    for (int x = 0; x < 64; ++x)
      ASSERT_NEAR(planes[y * 64 + x], is_bar ? -1 : plain(image, {64, 32}, x, y - 16, 0), 2e-5)
          << x << ", " << y;
  }
}

TEST(PictureFit, pad_keeps_at_least_a_line_of_the_thinnest_picture) {
  TestImage image(1, 4000);
  std::ranges::fill(image.pixels, 255);

  const std::vector<float> planes = fitted(image, Fit::pad, {.width = 64, .height = 64});

  EXPECT_EQ(std::ranges::count(planes, 1.0f), 3 * 64);
}

TEST(PictureFit, pad_rounds_the_other_side_down) {
  TestImage image(31, 100);
  std::ranges::fill(image.pixels, 255);

  const std::vector<float> planes = fitted(image, Fit::pad, {.width = 64, .height = 64});

  EXPECT_EQ(std::ranges::count(planes, 1.0f), 3 * 64 * 19);  // 64 · 31 / 100 = 19.84
}

TEST(PictureFit, of_the_same_size_is_the_pixels_themselves) {
  TestImage image = gradient(24, 40, 5);

  const std::vector<float> planes = fitted(image, Fit::crop, {.width = 40, .height = 24});

  for (std::size_t i = 0; i < planes.size() / 3; ++i)
    ASSERT_EQ(planes[i], static_cast<float>(image.pixels[3 * i]) / 127.5f - 1.0f);
}

// torch 2.13: interpolate(arange(12).view(1, 1, 3, 4) * 20, size=(2, 6), mode="bilinear",
// align_corners=False)
TEST(PictureFit, gives_the_numbers_of_torch) {
  TestImage image(3, 4);
  for (int i = 0; i < 12; ++i)
    for (int channel = 0; channel < 3; ++channel)
      image.at(i / 4, i % 4, channel) = static_cast<std::uint8_t>(20 * i);
  const float expected[12] = {20.00000f,  30.00000f,  43.33334f,  56.66667f,  70.00000f,  80.00000f,
                              140.00000f, 150.00000f, 163.33334f, 176.66666f, 190.00000f, 200.00000f};

  const std::vector<float> planes = fitted(image, Fit::stretch, {.width = 6, .height = 2});

  for (int i = 0; i < 12; ++i) EXPECT_NEAR(planes[i], expected[i] / 127.5f - 1, 1e-6) << i;
}

TEST(PictureFit, tells_what_is_lost) {
  EXPECT_EQ(fit_note({1920, 1080}, Fit::crop, {768, 512}),
            "1920x1080 to 768x512: cut 151 pixels left and right");
  EXPECT_EQ(fit_note({1000, 1000}, Fit::crop, {768, 512}),
            "1000x1000 to 768x512: cut 167 pixels top and bottom");
  EXPECT_EQ(fit_note({1920, 1080}, Fit::pad, {768, 512}),
            "1920x1080 to 768x512: black 40 pixels top and bottom");
  EXPECT_EQ(fit_note({1920, 1080}, Fit::stretch, {512, 512}),
            "1920x1080 to 512x512: width squeezed to 56.2 %");
  EXPECT_EQ(fit_note({1536, 1024}, Fit::crop, {768, 512}), "");
  EXPECT_EQ(fit_note({1536, 1024}, Fit::pad, {768, 512}), "");
  EXPECT_EQ(fit_note({1536, 1024}, Fit::stretch, {768, 512}), "");
}

}  // namespace
}  // namespace sluice::media
