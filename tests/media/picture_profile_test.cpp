#include "media/picture.h"

#include "built_pictures.h"
#include "world.h"

#include <gmock/gmock.h>
#include <lcms2.h>
extern "C" {
#include <libavutil/frame.h>
}

#include <array>
#include <cstring>

namespace sluice::media {
namespace {

using namespace std::literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

void name_it(cmsHPROFILE profile, const char* name) {
  cmsMLU* text = cmsMLUalloc(nullptr, 1);
  cmsMLUsetASCII(text, "en", "US", name);
  cmsWriteTag(profile, cmsSigProfileDescriptionTag, text);
  cmsMLUfree(text);
}

std::string saved(cmsHPROFILE profile) {
  cmsUInt32Number size = 0;
  cmsSaveProfileToMem(profile, nullptr, &size);
  std::string bytes(size, '\0');
  cmsSaveProfileToMem(profile, bytes.data(), &size);
  cmsCloseProfile(profile);
  return bytes;
}

// sRGB's primaries without its curve.
std::string linear_profile() {
  const cmsCIExyY white = {0.3127, 0.3290, 1};
  const cmsCIExyYTRIPLE primaries = {{0.64, 0.33, 1}, {0.30, 0.60, 1}, {0.15, 0.06, 1}};
  cmsToneCurve* line = cmsBuildGamma(nullptr, 1.0);
  cmsToneCurve* lines[3] = {line, line, line};
  cmsHPROFILE profile = cmsCreateRGBProfile(&white, &primaries, lines);
  cmsFreeToneCurve(line);
  name_it(profile, "Linear Light");
  return saved(profile);
}

std::string srgb_profile() {
  return saved(cmsCreate_sRGBProfile());
}

// Inks of which only black does anything: its share makes Lab's lightness less.
std::string black_ink_profile() {
  cmsHPROFILE profile = cmsCreateProfilePlaceholder(nullptr);
  cmsSetProfileVersion(profile, 4.3);
  cmsSetDeviceClass(profile, cmsSigOutputClass);
  cmsSetColorSpace(profile, cmsSigCmykData);
  cmsSetPCS(profile, cmsSigLabData);
  cmsPipeline* pipeline = cmsPipelineAlloc(nullptr, 4, 3);
  cmsStage* table = cmsStageAllocCLut16bit(nullptr, 2, 4, 3, nullptr);
  cmsStageSampleCLut16bit(
      table,
      [](const cmsUInt16Number in[], cmsUInt16Number out[], void*) -> cmsInt32Number {
        out[0] = static_cast<cmsUInt16Number>(65535 - in[3]);
        out[1] = out[2] = 0x8080;
        return TRUE;
      },
      nullptr, 0);
  for (cmsStage* stage :
       {cmsStageAllocToneCurves(nullptr, 4, nullptr), table, cmsStageAllocToneCurves(nullptr, 3, nullptr)})
    cmsPipelineInsertStage(pipeline, cmsAT_END, stage);
  cmsWriteTag(profile, cmsSigAToB0Tag, pipeline);
  cmsPipelineFree(pipeline);
  name_it(profile, "Black Alone");
  return saved(profile);
}

std::string with_profile(const std::string& jpeg, const std::string& icc) {
  return with_jpeg_segment(jpeg, 0xe2, "ICC_PROFILE\0\x01\x01"s + icc);
}

std::string flat_jpeg(const char* format, std::array<int, 3> yuv) {
  FramePtr frame = blank_frame(format, 32, 32);
  for (int plane = 0; plane < 3 && frame->data[plane] != nullptr; ++plane)
    for (int row = 0; row < 32; ++row)
      std::memset(frame->data[plane] + row * frame->linesize[plane], yuv[plane], 32);
  return encode_picture("mjpeg", *frame);
}

class PictureProfile : public ::testing::Test {
 protected:
  Picture read(const std::string& bytes) {
    write_bytes(folder_ / "p.jpg", bytes);
    return read_picture(folder_ / "p.jpg");
  }
  static void expect_first_pixel(const Picture& picture, std::array<int, 3> expected, int by) {
    for (int channel = 0; channel < 3; ++channel) EXPECT_NEAR(picture.pixels[channel], expected[channel], by);
  }

  TestFolder folder_;
};

TEST_F(PictureProfile, brings_colours_to_srgb_and_is_named) {
  const Picture picture = read(with_profile(flat_jpeg("yuvj444p", {64, 128, 128}), linear_profile()));

  // 64 / 255 of the light: 1.055 · 0.251^(1 / 2.4) - 0.055 = 0.5382
  expect_first_pixel(picture, {137, 137, 137}, 1);
  EXPECT_THAT(picture.conversions, ElementsAre("colour profile 'Linear Light' to sRGB"));
}

TEST_F(PictureProfile, that_is_srgb_changes_nothing) {
  const std::string jpeg = flat_jpeg("yuvj444p", {64, 90, 170});

  const Picture picture = read(with_profile(jpeg, srgb_profile()));

  EXPECT_EQ(picture.pixels, read(jpeg).pixels);
  EXPECT_THAT(picture.conversions, IsEmpty());
}

TEST_F(PictureProfile, of_inks_is_asked_before_the_plain_formula) {
  for (const char* names : {"\1\2\3\4", "CMYK"}) {
    const std::string jpeg =
        four_plane_jpeg({.planes = {20, 200, 100, 128}, .adobe_transform = 0, .names = names});

    const Picture picture = read(with_profile(jpeg, black_ink_profile()));

    // L* = 100 · 128 / 255 = 50.2 is sRGB 119.6; the other inks, which the plain formula would show, do
    // nothing.
    expect_first_pixel(picture, {120, 120, 120}, 2);
    EXPECT_THAT(picture.conversions, ElementsAre("colour profile 'Black Alone' to sRGB")) << names;
  }
}

TEST_F(PictureProfile, for_other_channels_is_left_out_and_told) {
  const std::string jpeg = flat_jpeg("yuvj444p", {64, 90, 170});

  const Picture picture = read(with_profile(jpeg, black_ink_profile()));

  EXPECT_EQ(picture.pixels, read(jpeg).pixels);
  EXPECT_THAT(
      picture.conversions,
      ElementsAre("colour profile 'Black Alone' left out: it is for other channels than the picture has"));
}

TEST_F(PictureProfile, that_cannot_be_read_is_left_out_and_told) {
  const Picture picture = read(with_profile(flat_jpeg("yuvj444p", {64, 128, 128}), std::string(300, 'x')));

  EXPECT_THAT(picture.conversions, ElementsAre("colour profile left out: it cannot be read"));
}

}  // namespace
}  // namespace sluice::media
