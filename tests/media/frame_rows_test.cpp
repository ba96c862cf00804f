#include "media/frame_rows.h"

#include <sluice/error.h>
#include "built_pictures.h"
#include "world.h"

#include <gmock/gmock.h>
extern "C" {
#include <libavutil/frame.h>
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace sluice::media {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint8_t> rgb_row(const AVFrame& frame, int row, const ColourMeaning& meaning = {}) {
  std::vector<std::uint8_t> rgb(std::size_t{3} * frame.width);
  FrameRows(frame, meaning, "p.png").rgb(row, rgb);
  return rgb;
}

constexpr ColourMeaning kBt709{.red = 0.2126, .blue = 0.0722, .full_range = false, .left = 0, .top = 0.5};

struct Yuv {
  double y, u, v;  // in code values of 8 bits
};

// The definition in f64.
std::array<double, 3> plain_rgb(const Yuv& yuv, const ColourMeaning& meaning) {
  const double y = meaning.full_range ? yuv.y : (yuv.y - 16) * 255 / 219;
  const double scale = meaning.full_range ? 1 : 255.0 / 224;
  const double u = (yuv.u - 128) * scale, v = (yuv.v - 128) * scale;
  const double red = y + 2 * (1 - meaning.red) * v, blue = y + 2 * (1 - meaning.blue) * u;
  const double green = (y - meaning.red * red - meaning.blue * blue) / (1 - meaning.red - meaning.blue);
  return {std::clamp(red, 0.0, 255.0), std::clamp(green, 0.0, 255.0), std::clamp(blue, 0.0, 255.0)};
}

TEST(FrameRows, convert_every_yuv_colour_as_its_definition_says) {
  constexpr int kWidth = 64;
  constexpr unsigned kSeed = 11;
  std::mt19937 random(kSeed);
  for (const ColourMeaning& meaning : {ColourMeaning{}, kBt709}) {
    FramePtr frame = blank_frame("yuv444p", kWidth, 1);
    for (int plane = 0; plane < 3; ++plane)
      for (int x = 0; x < kWidth; ++x) frame->data[plane][x] = static_cast<std::uint8_t>(random());

    const std::vector<std::uint8_t> rgb = rgb_row(*frame, 0, meaning);

    for (int x = 0; x < kWidth; ++x) {
      const auto expected =
          plain_rgb({1.0 * frame->data[0][x], 1.0 * frame->data[1][x], 1.0 * frame->data[2][x]}, meaning);
      for (int channel = 0; channel < 3; ++channel)
        EXPECT_NEAR(rgb[3 * x + channel], expected[channel], 0.5001) << "pixel " << x << ", seed " << kSeed;
    }
  }
}

TEST(FrameRows, give_the_same_colours_from_ten_bits_as_from_eight) {
  FramePtr eight = blank_frame("yuv444p", 3, 1), ten = blank_frame("yuv444p10le", 3, 1);
  const std::uint8_t values[3][3] = {{16, 126, 235}, {90, 128, 240}, {240, 100, 128}};
  for (int plane = 0; plane < 3; ++plane) {
    for (int x = 0; x < 3; ++x) {
      eight->data[plane][x] = values[plane][x];
      const auto wide = static_cast<std::uint16_t>(values[plane][x] << 2);
      std::memcpy(ten->data[plane] + 2 * x, &wide, 2);
    }
  }

  EXPECT_EQ(rgb_row(*eight, 0, kBt709), rgb_row(*ten, 0, kBt709));
}

// One colour sample in the middle of four pixels: libjpeg's "fancy upsampling" weighs 3 to 1 in both
// directions.
TEST(FrameRows, interpolate_colour_between_its_places) {
  FramePtr frame = blank_frame("yuvj420p", 4, 4);
  for (int row = 0; row < 4; ++row) std::memset(frame->data[0] + row * frame->linesize[0], 128, 4);
  for (int row = 0; row < 2; ++row)
    for (int x = 0; x < 2; ++x) {
      frame->data[1][row * frame->linesize[1] + x] = 128;
      frame->data[2][row * frame->linesize[2] + x] = static_cast<std::uint8_t>(128 + 16 * x + 32 * row);
    }

  std::vector<int> red;
  for (int row : {0, 1})
    for (int x = 0; x < 4; ++x) red.push_back(rgb_row(*frame, row)[3 * x]);

  const auto of = [](double v) { return static_cast<int>(std::lround(128 + 1.402 * v)); };
  EXPECT_THAT(red, ElementsAre(of(0), of(4), of(12), of(16), of(8), of(12), of(20), of(24)));
}

TEST(FrameRows, put_colour_on_the_left_pixel_for_video) {
  FramePtr frame = blank_frame("yuv422p", 4, 1);
  std::memset(frame->data[0], 126, 4);
  std::memset(frame->data[1], 128, 2);
  frame->data[2][0] = 128;
  frame->data[2][1] = 168;

  const std::vector<std::uint8_t> rgb = rgb_row(*frame, 0, kBt709);

  const auto of = [](double v) {
    return static_cast<int>(std::lround(110 * 255.0 / 219 + 1.5748 * v * 255 / 224));
  };
  EXPECT_THAT((std::vector<int>{rgb[0], rgb[3], rgb[6], rgb[9]}), ElementsAre(of(0), of(20), of(40), of(40)));
}

TEST(FrameRows, round_sixteen_bits_to_eight) {
  FramePtr frame = blank_frame("gray16be", 4, 1);
  const int values[4] = {128, 129, 257 * 77 + 128, 65535};
  for (int x = 0; x < 4; ++x) {
    frame->data[0][2 * x] = static_cast<std::uint8_t>(values[x] >> 8);
    frame->data[0][2 * x + 1] = static_cast<std::uint8_t>(values[x]);
  }
  std::vector<std::uint8_t> grey(4);

  FrameRows(*frame, {}, "p.png").grey(0, grey);

  EXPECT_THAT(grey, ElementsAre(0, 1, 77, 255));
}

TEST(FrameRows, refuse_floating_point_by_its_name) {
  FramePtr frame = blank_frame("gbrpf32le", 4, 1);

  Error error = error_of([&] { FrameRows(*frame, {}, "light.exr"); });

  EXPECT_EQ(error.kind(), ErrorKind::bad_input);
  EXPECT_THAT(error.what(), HasSubstr("light.exr: has pixels of the kind 'gbrpf32le'"));
}

TEST(ColourMeaning, of_an_untagged_video_depends_on_its_lines_and_is_told) {
  FramePtr small = blank_frame("yuv420p", 64, 718), large = blank_frame("yuv420p", 64, 720);

  EXPECT_EQ(colour_meaning(*small, Untagged::video, "v").red, 0.299);
  EXPECT_EQ(colour_meaning(*large, Untagged::video, "v").red, 0.2126);
  EXPECT_EQ(colour_meaning(*small, Untagged::video, "v").told,
            "no colour tags: taken as BT.601 for its 718 lines");
}

TEST(ColourMeaning, follows_the_tags_where_there_are_any) {
  FramePtr frame = blank_frame("yuv420p", 64, 64);
  frame->colorspace = AVCOL_SPC_BT709;
  frame->color_range = AVCOL_RANGE_JPEG;
  frame->chroma_location = AVCHROMA_LOC_TOPLEFT;

  EXPECT_EQ(colour_meaning(*frame, Untagged::video, "v"),
            (ColourMeaning{.red = 0.2126, .blue = 0.0722, .full_range = true, .left = 0, .top = 0}));
}

TEST(ColourMeaning, refuses_hdr_and_rare_matrices_by_name) {
  FramePtr frame = blank_frame("yuv420p10le", 64, 64);
  frame->color_trc = AVCOL_TRC_SMPTE2084;
  EXPECT_THAT(error_of([&] { colour_meaning(*frame, Untagged::video, "v.mkv"); }).what(),
              HasSubstr("v.mkv: has HDR colours (PQ)"));

  frame->color_trc = AVCOL_TRC_ARIB_STD_B67;
  EXPECT_THAT(error_of([&] { colour_meaning(*frame, Untagged::video, "v.mkv"); }).what(), HasSubstr("(HLG)"));

  frame->color_trc = AVCOL_TRC_BT709;
  frame->colorspace = AVCOL_SPC_YCGCO;
  EXPECT_THAT(error_of([&] { colour_meaning(*frame, Untagged::video, "v.mkv"); }).what(),
              HasSubstr("'ycgco'"));
}

}  // namespace
}  // namespace sluice::media
