#include "media/picture.h"

#include "built_pictures.h"
#include "media/png_writer.h"
#include "world.h"

#include <gmock/gmock.h>
extern "C" {
#include <libavutil/frame.h>
}

#include <array>
#include <cstring>
#include <tuple>

namespace sluice::media {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Colour = std::array<int, 3>;

constexpr int kWidth = 48, kHeight = 32;

std::string png_bytes(const TestImage& image) {
  const std::vector<std::byte> bytes = encode_png(image.view());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class PictureFile : public ::testing::Test {
 protected:
  Picture read(const std::string& bytes, const std::string& name = "picture") {
    write_bytes(folder_ / name, bytes);
    return read_picture(folder_ / name);
  }

  // A JPEG of two halves: left red, right blue.
  static std::string jpeg() {
    FramePtr frame = blank_frame("yuvj444p", kWidth, kHeight);
    for (int row = 0; row < kHeight; ++row) {
      for (int x = 0; x < kWidth; ++x) {
        const bool is_left = x < kWidth / 2;
        frame->data[0][row * frame->linesize[0] + x] = is_left ? 76 : 29;
        frame->data[1][row * frame->linesize[1] + x] = is_left ? 85 : 255;
        frame->data[2][row * frame->linesize[2] + x] = is_left ? 255 : 107;
      }
    }
    return encode_picture("mjpeg", *frame);
  }

  static Colour at(const Picture& picture, int x, int y) {
    const std::uint8_t* pixel = &picture.pixels[3 * (static_cast<std::size_t>(y) * picture.width + x)];
    return {pixel[0], pixel[1], pixel[2]};
  }

  static void expect_near(const Colour& colour, const Colour& expected, int by) {
    for (int channel = 0; channel < 3; ++channel)
      EXPECT_NEAR(colour[channel], expected[channel], by) << "channel " << channel;
  }

  TestFolder folder_;
};

TEST_F(PictureFile, png_comes_back_to_the_bit) {
  const TestImage image = gradient(kHeight, kWidth, 1);

  const Picture picture = read(png_bytes(image));

  EXPECT_EQ(picture.width, kWidth);
  EXPECT_EQ(picture.height, kHeight);
  EXPECT_EQ(picture.pixels, image.pixels);
  EXPECT_THAT(picture.conversions, IsEmpty());
}

TEST_F(PictureFile, is_known_by_its_content_whatever_its_name) {
  const TestImage image = gradient(kHeight, kWidth, 1);

  for (const char* name :
       {"картина.jpg", "絵 'quoted' \"twice\".txt", "a:b.mp4", "frame_%03d.png", "*?[x].gif"})
    EXPECT_EQ(read(png_bytes(image), name).pixels, image.pixels) << name;
}

TEST_F(PictureFile, jpeg_has_the_colours_of_full_range_bt601) {
  const Picture picture = read(jpeg());

  expect_near(at(picture, 4, 4), {254, 0, 0}, 3);
  expect_near(at(picture, 44, 4), {0, 0, 254}, 3);
}

TEST_F(PictureFile, jpeg_with_an_orientation_stands_upright_and_says_so) {
  write_bytes(folder_ / "turned.jpg",
              with_jpeg_segment(jpeg(), 0xe1, std::string("Exif\0\0", 6) + exif_orientation_block(6)));

  const PictureInfo info = probe_picture(folder_ / "turned.jpg");
  const Picture picture = read_picture(folder_ / "turned.jpg");

  EXPECT_EQ(info.width, kHeight);
  EXPECT_EQ(info.height, kWidth);
  EXPECT_EQ(picture.width, kHeight);
  EXPECT_EQ(picture.height, kWidth);
  expect_near(at(picture, 4, 4), {254, 0, 0}, 3);  // what was left is above
  expect_near(at(picture, 4, 44), {0, 0, 254}, 3);
  EXPECT_THAT(picture.conversions, ElementsAre("turned by 90° (EXIF)"));
}

TEST_F(PictureFile, png_with_an_orientation_stands_upright_too) {
  const TestImage image = gradient(kHeight, kWidth, 1);

  const Picture picture = read(with_png_chunk(png_bytes(image), "eXIf", exif_orientation_block(8)));

  EXPECT_EQ(picture.width, kHeight);
  EXPECT_EQ(at(picture, 0, kWidth - 1), (Colour{image.pixels[0], image.pixels[1], image.pixels[2]}));
}

TEST_F(PictureFile, alpha_lets_black_through) {
  FramePtr frame = blank_frame("rgba", kWidth, kHeight);
  for (int row = 0; row < kHeight; ++row)
    for (int x = 0; x < kWidth; ++x)
      std::memcpy(frame->data[0] + row * frame->linesize[0] + 4 * x,
                  std::array<std::uint8_t, 4>{200, 100, 50, 128}.data(), 4);

  const Picture picture = read(encode_picture("png", *frame));

  EXPECT_EQ(at(picture, 7, 7), (Colour{100, 50, 25}));  // 200 · 128 / 255 = 100.4
  EXPECT_THAT(picture.conversions, ElementsAre("alpha over black"));
}

TEST_F(PictureFile, alpha_that_hides_nothing_is_not_told) {
  FramePtr frame = blank_frame("rgba", kWidth, kHeight);
  std::memset(frame->buf[0]->data, 255, frame->buf[0]->size);

  EXPECT_THAT(read(encode_picture("png", *frame)).conversions, IsEmpty());
}

TEST_F(PictureFile, sixteen_bits_are_rounded_to_eight) {
  for (const char* encoder : {"png", "tiff"}) {
    FramePtr native = blank_frame(std::string(encoder) == "tiff" ? "rgb48le" : "rgb48be", kWidth, kHeight);
    for (int row = 0; row < kHeight; ++row)
      for (int x = 0; x < kWidth; ++x)
        std::memcpy(native->data[0] + row * native->linesize[0] + 6 * x,
                    std::string(encoder) == "tiff" ? "\xe4\x64\xe5\x64\xff\xff" : "\x64\xe4\x64\xe5\xff\xff",
                    6);

    const Picture picture = read(encode_picture(encoder, *native));

    EXPECT_EQ(at(picture, 3, 3), (Colour{100, 101, 255}))
        << encoder;  // 25828 = 100.4981 · 257, 25829 above a half
    EXPECT_THAT(picture.conversions, ElementsAre("more than 8 bits to 8")) << encoder;
  }
}

TEST_F(PictureFile, grey_fills_three_channels) {
  FramePtr frame = blank_frame("gray", kWidth, kHeight);
  std::memset(frame->buf[0]->data, 99, frame->buf[0]->size);

  const Picture picture = read(encode_picture("png", *frame));

  EXPECT_EQ(at(picture, 1, 1), (Colour{99, 99, 99}));
  EXPECT_THAT(picture.conversions, ElementsAre("grey to three channels"));
}

TEST_F(PictureFile, one_bit_pixels_are_black_and_white) {
  FramePtr frame = blank_frame("monob", kWidth, kHeight);
  for (int row = 0; row < kHeight; ++row) frame->data[0][row * frame->linesize[0]] = 0x80;

  const Picture picture = read(encode_picture("png", *frame));

  EXPECT_EQ(at(picture, 0, 5), (Colour{255, 255, 255}));
  EXPECT_EQ(at(picture, 1, 5), (Colour{0, 0, 0}));
}

TEST_F(PictureFile, palette_becomes_its_colours) {
  FramePtr frame = blank_frame("pal8", kWidth, kHeight);
  const std::uint32_t palette[2] = {0xff102030, 0xff405060};
  std::memcpy(frame->data[1], palette, sizeof palette);
  for (int row = 0; row < kHeight; ++row) frame->data[0][row * frame->linesize[0] + 1] = 1;

  const Picture picture = read(encode_picture("png", *frame));

  EXPECT_EQ(at(picture, 0, 0), (Colour{0x10, 0x20, 0x30}));
  EXPECT_EQ(at(picture, 1, 0), (Colour{0x40, 0x50, 0x60}));
}

TEST_F(PictureFile, bmp_and_tiff_come_back_to_the_bit) {
  const TestImage image = gradient(kHeight, kWidth, 2);
  for (const auto& [encoder, format, order] :
       {std::tuple{"tiff", "rgb24", std::array{0, 1, 2}}, std::tuple{"bmp", "bgr24", std::array{2, 1, 0}}}) {
    FramePtr frame = blank_frame(format, kWidth, kHeight);
    for (int row = 0; row < kHeight; ++row)
      for (int x = 0; x < kWidth; ++x)
        for (int channel = 0; channel < 3; ++channel)
          frame->data[0][row * frame->linesize[0] + 3 * x + channel] =
              image.pixels[3 * (static_cast<std::size_t>(row) * kWidth + x) + order[channel]];

    EXPECT_EQ(read(encode_picture(encoder, *frame)).pixels, image.pixels) << encoder;
  }
}

// Adobe stores light: 255 is no ink.
TEST_F(PictureFile, cmyk_becomes_rgb_by_the_plain_formula) {
  for (const char* names : {"\1\2\3\4", "CMYK"}) {
    const Picture picture =
        read(four_plane_jpeg({.planes = {200, 100, 50, 128}, .adobe_transform = 0, .names = names}));

    EXPECT_EQ(at(picture, 9, 9), (Colour{100, 50, 25}))
        << names;  // light of the colour times the black's, over 255
    EXPECT_THAT(picture.conversions, ElementsAre("CMYK by the plain formula"));
  }
}

TEST_F(PictureFile, cmyk_stored_as_ycck_is_the_same) {
  // YCbCr of (200, 100, 50)
  const Picture picture = read(four_plane_jpeg({.planes = {124, 86, 182, 128}, .adobe_transform = 2}));

  expect_near(at(picture, 9, 9), {100, 50, 25}, 2);
}

}  // namespace
}  // namespace sluice::media
