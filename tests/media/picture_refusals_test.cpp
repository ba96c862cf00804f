#include "media/picture.h"

#include "built_pictures.h"
#include "media/png_writer.h"
#include "world.h"

#include <gmock/gmock.h>
extern "C" {
#include <libavutil/frame.h>
}

#include <random>

namespace sluice::media {
namespace {

using namespace std::literals;
using ::testing::HasSubstr;

std::string png_of(int width, int height) {
  const std::vector<std::byte> bytes = encode_png(gradient(height, width, 0).view());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string gif_of(int frames) {
  std::string gif =
      "GIF89a" + little_endian_bytes(32, 2) + little_endian_bytes(32, 2) + "\x80\0\0\0\0\0\xff\xff\xff"s;
  for (int i = 0; i < frames; ++i)
    gif += "!\xf9\x04\0\x0a\0\0\0"s + "," + std::string(4, '\0') + little_endian_bytes(32, 2) +
           little_endian_bytes(32, 2) + "\0\x02\x02\x4c\x01\0"s;
  return gif + ";";
}

std::string riff_chunk(const std::string& kind, const std::string& content) {
  return kind + little_endian_bytes(static_cast<std::uint32_t>(content.size()), 4) + content;
}

std::string animated_webp(int frames) {
  std::string chunks =
      riff_chunk("VP8X", "\x02\0\0\0"s + little_endian_bytes(31, 3) + little_endian_bytes(47, 3));
  for (int i = 0; i < frames; ++i) chunks += riff_chunk("ANMF", std::string(16, '\0'));
  return riff_chunk("RIFF", "WEBP" + chunks);
}

class PictureRefusal : public ::testing::Test {
 protected:
  // Both ways to look at a file refuse it the same way.
  Error refusal(const std::string& bytes, const std::string& name = "picture.png") {
    write_bytes(folder_ / name, bytes);
    const Error probed = error_of([&] { probe_picture(folder_ / name); });
    const Error read = error_of([&] { read_picture(folder_ / name); });
    EXPECT_EQ(probed.kind(), read.kind());
    EXPECT_STREQ(probed.what(), read.what());
    EXPECT_THAT(read.what(), HasSubstr(name + ": "));
    EXPECT_NE(read.hint(), "");
    return read;
  }

  TestFolder folder_;
};

// There are no pixels in these files: who tried to decode them would say that they are damaged.
TEST_F(PictureRefusal, of_twenty_thousand_pixels_a_side_needs_the_header_only) {
  const std::string png = png_header(20000, 20000) + png_chunk("IDAT", "x");
  const std::string jpeg =
      with_jpeg_segment("\xff\xd8", 0xc0, "\x08" + big_endian(20000, 2) + big_endian(20000, 2) + "\x03");
  const std::string bmp = "BM" + std::string(12, '\0') + little_endian_bytes(40, 4) +
                          little_endian_bytes(20000, 4) + little_endian_bytes(20000, 4) +
                          std::string(28, '\0');
  const std::string gif = "GIF89a" + little_endian_bytes(20000, 2) + little_endian_bytes(20000, 2);
  const std::string tiff =
      "II*\0"s + little_endian_bytes(8, 4) + little_endian_bytes(2, 2) + little_endian_bytes(256, 2) +
      little_endian_bytes(4, 2) + little_endian_bytes(1, 4) + little_endian_bytes(20000, 4) +
      little_endian_bytes(257, 2) + little_endian_bytes(4, 2) + little_endian_bytes(1, 4) +
      little_endian_bytes(20000, 4) + little_endian_bytes(0, 4);
  const std::string webp =
      riff_chunk("RIFF", "WEBP" + riff_chunk("VP8X", "\0\0\0\0"s + little_endian_bytes(19999, 3) +
                                                         little_endian_bytes(19999, 3)));
  for (const std::string& bytes : {png, jpeg, bmp, gif, tiff, webp}) {
    const Error error = refusal(bytes);

    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_THAT(error.what(),
                HasSubstr("has 20000 x 20000 pixels, more than 16384 a side or 104857600 in all"));
    EXPECT_THAT(error.hint(), HasSubstr("scale it down"));
  }
}

TEST_F(PictureRefusal, of_too_many_pixels_in_all_though_each_side_is_allowed) {
  EXPECT_THAT(refusal(png_header(16384, 16384)).what(), HasSubstr("has 16384 x 16384 pixels"));
}

TEST_F(PictureRefusal, of_one_pixel) {
  const Error error = refusal(png_of(1, 1));

  EXPECT_EQ(error.kind(), ErrorKind::bad_input);
  EXPECT_THAT(error.what(), HasSubstr("has 1 x 1 pixels, but each side must have at least 16"));
}

TEST_F(PictureRefusal, of_an_animation_names_its_frames) {
  const std::string apng = with_png_chunk(png_of(32, 32), "acTL", big_endian(7, 4) + big_endian(0, 4));

  EXPECT_THAT(refusal(gif_of(3)).what(), HasSubstr("is an animation of 3 frames, not a picture"));
  EXPECT_THAT(refusal(apng).what(), HasSubstr("is an animation of 7 frames"));
  EXPECT_THAT(refusal(animated_webp(5)).what(), HasSubstr("is an animation of 5 frames"));
  EXPECT_THAT(refusal(gif_of(3)).hint(), HasSubstr("--video"));
}

TEST_F(PictureRefusal, of_a_gif_is_only_for_animations) {
  write_bytes(folder_ / "one.gif", gif_of(1));

  EXPECT_EQ(probe_picture(folder_ / "one.gif").width, 32);
}

TEST_F(PictureRefusal, of_a_video_points_to_its_flag) {
  write_gradients(folder_ / "clip.mp4",
                  {.width = 64, .height = 64, .rate = {24, 1}, .frames = 2, .sound = {}});

  const Error error = refusal(bytes_of(folder_ / "clip.mp4"), "clip.png");

  EXPECT_EQ(error.kind(), ErrorKind::bad_input);
  EXPECT_THAT(error.what(), HasSubstr("is a video, not a picture"));
  EXPECT_EQ(error.hint(), "give it with --video");
}

TEST_F(PictureRefusal, of_what_is_no_picture_says_what_it_is) {
  EXPECT_THAT(refusal("").what(), HasSubstr("is an empty file, not a picture"));
  EXPECT_THAT(refusal("<!doctype html><html>").what(), HasSubstr("is a web page, not a picture"));
  EXPECT_THAT(refusal("version https://git-lfs.github.com/spec/v1\n").what(),
              HasSubstr("is a Git LFS pointer"));
  EXPECT_THAT(refusal("dear diary, today I wrote a text\n", "diary.txt").what(),
              HasSubstr("is no picture that can be read"));
}

TEST_F(PictureRefusal, of_a_missing_file_or_a_folder_names_it) {
  EXPECT_EQ(error_of([&] { read_picture(folder_ / "нет.png"); }).kind(), ErrorKind::bad_input);
  EXPECT_THAT(error_of([&] { read_picture(folder_ / "нет.png"); }).what(), HasSubstr("нет.png"));
  EXPECT_EQ(error_of([&] { read_picture(folder_.path()); }).kind(), ErrorKind::bad_input);
}

// Wherever it is cut, there is no half picture.
TEST_F(PictureRefusal, of_a_picture_cut_short_at_any_place) {
  FramePtr grey = blank_frame("yuvj420p", 48, 32);
  FramePtr rgb = blank_frame("rgb24", 48, 32), bgr = blank_frame("bgr24", 48, 32);
  for (const std::string& whole : {png_of(48, 32), encode_picture("mjpeg", *grey),
                                   encode_picture("tiff", *rgb), encode_picture("bmp", *bgr), gif_of(1)}) {
    for (std::size_t size = 16; size < whole.size(); size += 1 + whole.size() / 37) {
      write_bytes(folder_ / "cut", whole.substr(0, size));
      const Error error = error_of([&] { read_picture(folder_ / "cut"); });

      EXPECT_EQ(error.kind(), ErrorKind::corrupt_file)
          << error.what() << ", cut at " << size << " of " << whole.size();
      EXPECT_THAT(error.hint(), HasSubstr("again"));
    }
  }
}

TEST_F(PictureRefusal, of_a_png_with_a_wrong_byte) {
  std::string png = png_of(48, 32);
  png[png.size() / 2] = static_cast<char>(png[png.size() / 2] ^ 0x20);
  write_bytes(folder_ / "damaged.png", png);

  const Error error = error_of([&] { read_picture(folder_ / "damaged.png"); });

  EXPECT_EQ(error.kind(), ErrorKind::corrupt_file);
  EXPECT_THAT(error.what(), HasSubstr("damaged.png: the png picture is damaged or cut short"));
}

// Whatever a file holds, there is a picture or an Error.
TEST_F(PictureRefusal, is_the_worst_that_random_damage_brings) {
  FramePtr grey = blank_frame("yuvj420p", 48, 32), rgb = blank_frame("rgb24", 48, 32);
  const std::string turned =
      with_jpeg_segment(encode_picture("mjpeg", *grey), 0xe1, "Exif\0\0"s + exif_orientation_block(6));
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  for (const std::string& whole :
       {png_of(48, 32), turned, encode_picture("tiff", *rgb), gif_of(2), animated_webp(2),
        four_plane_jpeg({.planes = {1, 2, 3, 4}, .adobe_transform = 2})}) {
    for (int round = 0; round < 200; ++round) {
      std::string bytes = whole.substr(0, round % 2 == 0 ? whole.size() : random() % whole.size());
      for (int i = 0; i < 3 && !bytes.empty(); ++i)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      write_bytes(folder_ / "damaged", bytes);
      try {
        EXPECT_TRUE(read_picture(folder_ / "damaged", {.most_pixels = 1 << 20}).view().is_whole());
      } catch (const Error& error) {
        EXPECT_TRUE(error.kind() == ErrorKind::bad_input || error.kind() == ErrorKind::corrupt_file)
            << error.what() << ", seed " << seed << ", round " << round;
      }
    }
  }
}

TEST_F(PictureRefusal, follows_the_limits_it_is_given) {
  write_bytes(folder_ / "a.png", png_of(48, 32));

  EXPECT_EQ(error_of([&] { probe_picture(folder_ / "a.png", {.largest_side = 47}); }).kind(),
            ErrorKind::bad_input);
  EXPECT_NO_THROW(probe_picture(folder_ / "a.png", {.largest_side = 48, .most_pixels = 48 * 32}));
}

}  // namespace
}  // namespace sluice::media
