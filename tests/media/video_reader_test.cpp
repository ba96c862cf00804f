#include "media/video_reader.h"

#include "built_videos.h"
#include "world.h"

#include <gmock/gmock.h>
extern "C" {
#include <libavutil/frame.h>
}

#include <cmath>
#include <cstring>

namespace sluice::media {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Rational kFilm{24, 1};

class VideoFileTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const BuiltVideo& video, const std::string& name = "clip.mkv") {
    write_video(folder_ / name, video);
    return folder_ / name;
  }

  // Which frames come, told by their shades.
  static std::vector<int> indices(const std::filesystem::path& path, Rational rate, std::int64_t first = 0) {
    VideoReader reader(path, rate, first);
    std::vector<int> found;
    while (auto frame = reader.next())
      found.push_back(static_cast<int>(std::lround((frame->pixels[0] - 20) / 3.0)));
    return found;
  }

  static std::vector<int> range(int from, int to) {
    std::vector<int> numbers;
    for (int i = from; i < to; ++i) numbers.push_back(i);
    return numbers;
  }

  TestFolder folder_;
};

TEST_F(VideoFileTest, comes_frame_by_frame_at_its_own_rate) {
  const auto path = write({.times = steady_times(40)});

  const ReadableVideo video = probe_video(path, kFilm);

  EXPECT_EQ(video.width, 32);
  EXPECT_EQ(video.height, 16);
  EXPECT_EQ(video.frames, 40);
  EXPECT_EQ(video.rate, kFilm);
  EXPECT_NEAR(video.seconds, 40 / 24.0, 0.001);
  EXPECT_FALSE(video.variable_rate);
  EXPECT_FALSE(video.has_sound);
  EXPECT_THAT(video.conversions, IsEmpty());
  EXPECT_THAT(indices(path, kFilm), ElementsAreArray(range(0, 40)));
}

TEST_F(VideoFileTest, is_sampled_at_another_rate_and_says_so) {
  const auto path = write({.times = steady_times(10), .tick = {1, 30}});

  EXPECT_THAT(indices(path, kFilm), ElementsAre(0, 1, 2, 3, 5, 6, 7, 8));
  EXPECT_EQ(probe_video(path, kFilm).frames, 8);
  EXPECT_THAT(probe_video(path, kFilm).conversions, ElementsAre("30 to 24 frames a second"));
}

TEST_F(VideoFileTest, of_a_varying_rate_shows_each_frame_as_long_as_it_lasts) {
  const auto path = write({.times = {0, 40, 80, 400, 440}, .tick = {1, 1000}, .states_rate = false});

  EXPECT_THAT(indices(path, {25, 1}), ElementsAre(0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4));
  EXPECT_TRUE(probe_video(path, {25, 1}).variable_rate);
}

TEST_F(VideoFileTest, begins_at_its_first_frame_wherever_that_lies) {
  std::vector<std::int64_t> late = steady_times(6);
  for (std::int64_t& time : late) time += 48;

  EXPECT_THAT(indices(write({.times = late}), kFilm), ElementsAreArray(range(0, 6)));
}

// H.264 with B-frames and key frames every ten: what is decoded in another order comes in that of showing,
// and a start in the middle gives the same pixels as reading up to there.
TEST_F(VideoFileTest, starts_anywhere_with_the_same_pixels) {
  BuiltVideo video{
      .encoder = "libx264",
      .container = "mp4",
      .pixel_format = "yuv420p",
      .width = 64,
      .height = 64,
      .times = steady_times(50),
      .full_range = false,
      .options = {
          {"g", "10"}, {"bf", "3"}, {"b-adapt", "0"}, {"sc_threshold", "0"}, {"preset", "ultrafast"}}};
  for (const auto& [container, name] :
       {std::pair{"mp4", "clip.mp4"}, std::pair{"matroska", "clip.mkv"}, std::pair{"mpegts", "clip.ts"}}) {
    video.container = container;
    const auto path = write(video, name);
    std::vector<std::vector<std::uint8_t>> all;
    VideoReader reader(path, kFilm);
    while (auto frame = reader.next()) all.emplace_back(frame->pixels.begin(), frame->pixels.end());
    ASSERT_EQ(all.size(), 50u) << name;
    for (std::size_t i = 1; i < all.size(); ++i)
      EXPECT_GT(all[i][0], all[i - 1][0]) << name << ", frame " << i;

    for (std::size_t first : {1u, 10u, 27u, 49u}) {
      VideoReader later(path, kFilm, static_cast<std::int64_t>(first));
      for (std::size_t i = first; i < all.size(); ++i) {
        const auto frame = later.next();
        ASSERT_TRUE(frame) << name << ", " << i;
        ASSERT_THAT(frame->pixels, ElementsAreArray(all[i])) << name << ", from " << first << ", frame " << i;
      }
      EXPECT_FALSE(later.next());
    }
  }
}

TEST_F(VideoFileTest, has_nothing_behind_its_end) {
  EXPECT_THAT(indices(write({.times = steady_times(5)}), kFilm, 5), IsEmpty());
}

TEST_F(VideoFileTest, of_a_turned_phone_stands_upright) {
  constexpr std::int32_t kOne = 1 << 16;
  BuiltVideo video{.encoder = "mpeg4",
                   .container = "mp4",
                   .pixel_format = "yuv420p",
                   .width = 64,
                   .height = 32,
                   .times = steady_times(3),
                   .full_range = false,
                   .display_matrix = {{0, kOne, 0, -kOne, 0, 0, 0, 0, 1 << 30}}};
  // The left half is bright.
  video.painter = [](AVFrame& frame, std::int64_t) {
    paint_shade(frame, 0);
    for (int row = 0; row < 32; ++row) std::memset(frame.data[0] + row * frame.linesize[0], 220, 32);
  };
  const auto path = write(video, "phone.mp4");

  const ReadableVideo info = probe_video(path, kFilm);
  VideoReader reader(path, kFilm);
  const RgbFrame frame = *reader.next();

  EXPECT_EQ(info.width, 32);
  EXPECT_EQ(info.height, 64);
  EXPECT_THAT(info.conversions, Contains("turned by 90°"));
  EXPECT_EQ(frame.width, 32);
  EXPECT_GT(frame.pixels[3 * (4 * 32 + 16)], 180);  // what was left is above
  EXPECT_LT(frame.pixels[3 * (60 * 32 + 16)], 60);
}

TEST_F(VideoFileTest, with_oblong_pixels_comes_with_square_ones) {
  const auto path = write({.times = steady_times(2), .aspect = {3, 2}});

  const ReadableVideo video = probe_video(path, kFilm);
  VideoReader reader(path, kFilm);
  const RgbFrame frame = *reader.next();

  EXPECT_EQ(video.width, 48);
  EXPECT_THAT(video.conversions, ElementsAre("32x16 oblong pixels to 48x16 square ones"));
  EXPECT_TRUE(frame.is_whole());
  EXPECT_EQ(frame.width, 48);
  EXPECT_THAT(frame.pixels, Each(shade(0)));
}

TEST_F(VideoFileTest, is_converted_by_its_own_matrix_and_range) {
  const auto first_pixel = [&](const std::string& matrix, bool full_range) {
    BuiltVideo video{.times = steady_times(1), .full_range = full_range, .matrix = matrix};
    video.painter = [](AVFrame& frame, std::int64_t index) {
      paint_shade(frame, index);
      std::memset(frame.data[0], 100, static_cast<std::size_t>(frame.linesize[0]) * frame.height);
      std::memset(frame.data[2], 160, static_cast<std::size_t>(frame.linesize[2]) * frame.height);
    };
    VideoReader reader(write(video), kFilm);
    const RgbFrame frame = *reader.next();
    return std::array<int, 3>{frame.pixels[0], frame.pixels[1], frame.pixels[2]};
  };

  EXPECT_THAT(first_pixel("bt709", true), ElementsAre(150, 85, 100));      // 100 + 1.5748 · 32
  EXPECT_THAT(first_pixel("smpte170m", true), ElementsAre(145, 77, 100));  // 100 + 1.402 · 32
  EXPECT_THAT(first_pixel("bt709", false),
              ElementsAre(155, 81, 98));  // (84 + 1.5748 · 32 · 219 / 224) · 255 / 219
}

TEST_F(VideoFileTest, without_colour_tags_says_what_it_was_taken_for) {
  EXPECT_THAT(probe_video(write({.times = steady_times(1), .matrix = ""}), kFilm).conversions,
              ElementsAre("no colour tags: taken as BT.601 for its 16 lines"));
}

TEST_F(VideoFileTest, in_hdr_is_refused_by_name) {
  const auto path = write({.times = steady_times(1), .transfer = "smpte2084"});

  const Error error = error_of([&] { probe_video(path, kFilm); });

  EXPECT_EQ(error.kind(), ErrorKind::bad_input);
  EXPECT_THAT(error.what(), HasSubstr("clip.mkv: has HDR colours (PQ)"));
  EXPECT_THAT(error.hint(), HasSubstr("SDR"));
}

// What sluice wrote comes back with the error of the codec alone.
TEST_F(VideoFileTest, that_sluice_wrote_comes_back) {
  constexpr int kFrames = 17;
  const auto smooth = [](int index) {
    TestImage image(64, 96);
    for (int row = 0; row < 64; ++row)
      for (int column = 0; column < 96; ++column) {
        image.at(row, column, 0) = static_cast<std::uint8_t>(40 + 2 * column);
        image.at(row, column, 1) = static_cast<std::uint8_t>(200 - 2 * row);
        image.at(row, column, 2) = static_cast<std::uint8_t>(30 + column + 6 * index);
      }
    return image;
  };
  const TestTone tone(vocoder_samples(kFrames, {24000, 1001}));
  Mp4Writer writer(
      folder_ / "own.mp4",
      {.width = 96, .height = 64, .rate = {24000, 1001}, .frames = kFrames, .sound = tone.view()});
  for (int i = 0; i < kFrames; ++i) writer.add_frame(smooth(i).view());
  writer.finish();

  const ReadableVideo video = probe_video(folder_ / "own.mp4", {24000, 1001});
  VideoReader reader(folder_ / "own.mp4", {24000, 1001});

  EXPECT_EQ(video.frames, kFrames);
  EXPECT_TRUE(video.has_sound);
  EXPECT_THAT(video.conversions, IsEmpty());
  for (int i = 0; i < kFrames; ++i) {
    const auto frame = reader.next();
    ASSERT_TRUE(frame);
    const TestImage expected = smooth(i);
    double squares = 0;
    for (std::size_t at = 0; at < expected.pixels.size(); ++at)
      squares += std::pow(frame->pixels[at] - expected.pixels[at], 2);
    EXPECT_GT(10 * std::log10(65025 * static_cast<double>(expected.pixels.size()) / squares), 36)
        << "frame " << i;
  }
  EXPECT_FALSE(reader.next());
}

}  // namespace
}  // namespace sluice::media
