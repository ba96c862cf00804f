#include "media/video_reader.h"

#include "built_pictures.h"
#include "built_videos.h"
#include "media/png_writer.h"
#include "media/wav_writer.h"
#include "world.h"

#include <gmock/gmock.h>
extern "C" {
#include <libavutil/frame.h>
}

#include <random>

namespace sluice::media {
namespace {

using ::testing::HasSubstr;

constexpr Rational kFilm{24, 1};

class VideoRefusal : public ::testing::Test {
 protected:
  // Probing and reading refuse a file the same way.
  static Error refusal(const std::filesystem::path& path) {
    const Error probed = error_of([&] { probe_video(path, kFilm); });
    const Error read = error_of([&] { VideoReader(path, kFilm); });
    EXPECT_EQ(probed.kind(), read.kind());
    EXPECT_STREQ(probed.what(), read.what());
    EXPECT_THAT(read.what(), HasSubstr(path.filename().string() + ": "));
    EXPECT_NE(read.hint(), "");
    return read;
  }
  Error refusal_of(const std::string& bytes, const std::string& name = "clip.mp4") {
    write_bytes(folder_ / name, bytes);
    return refusal(folder_ / name);
  }

  std::string mp4(std::int64_t frames) {
    write_gradients(folder_ / "whole.mp4",
                    {.width = 64, .height = 64, .rate = {24, 1}, .frames = frames, .sound = {}});
    return bytes_of(folder_ / "whole.mp4");
  }

  TestFolder folder_;
};

TEST_F(VideoRefusal, of_a_still_picture_points_to_its_flag) {
  const TestImage image = gradient(32, 32, 0);
  write_png(folder_ / "still.mp4", image.view());
  write_bytes(folder_ / "still.jpg", encode_picture("mjpeg", *blank_frame("yuvj420p", 32, 32)));

  for (const char* name : {"still.mp4", "still.jpg"}) {
    const Error error = refusal(folder_ / name);
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_THAT(error.what(), HasSubstr("is a still picture"));
    EXPECT_EQ(error.hint(), "give it with --image");
  }
}

TEST_F(VideoRefusal, of_a_sound_says_that_there_is_no_video_in_it) {
  const TestTone tone(4800);
  write_wav(folder_ / "tone.wav", tone.view());

  const Error error = refusal(folder_ / "tone.wav");

  EXPECT_EQ(error.kind(), ErrorKind::bad_input);
  EXPECT_THAT(error.what(), HasSubstr("has no video in it"));
  EXPECT_THAT(error.hint(), HasSubstr("--audio"));
}

TEST_F(VideoRefusal, of_a_video_without_frames) {
  write_video(
      folder_ / "none.avi",
      {.encoder = "mpeg4", .container = "avi", .pixel_format = "yuv420p", .times = {}, .full_range = false});

  const Error error = refusal(folder_ / "none.avi");

  EXPECT_EQ(error.kind(), ErrorKind::bad_input);
  EXPECT_THAT(error.what(), HasSubstr("none.avi: the video has no frames"));
}

TEST_F(VideoRefusal, of_an_mp4_that_ends_before_its_index) {
  const std::string whole = mp4(30);  // with its index in front
  const std::size_t index_end = whole.find("mdat") - 4;

  const Error error = refusal_of(whole.substr(0, whole.find("moov") - 4));

  EXPECT_EQ(error.kind(), ErrorKind::corrupt_file);
  EXPECT_THAT(error.what(), HasSubstr("an mp4 without the index (moov) of its frames"));
  EXPECT_THAT(error.hint(), HasSubstr("again"));
  EXPECT_THAT(refusal_of(whole.substr(0, index_end - 10)).what(), HasSubstr("its part 'moov' wants"));
}

TEST_F(VideoRefusal, of_an_mp4_that_ends_before_its_frames) {
  const std::string whole = mp4(30);

  const Error error = refusal_of(whole.substr(0, whole.size() - 50));

  EXPECT_EQ(error.kind(), ErrorKind::corrupt_file);
  EXPECT_THAT(error.what(), HasSubstr("is cut short or damaged: its part 'mdat' wants"));
}

// The boxes are whole, but the index speaks of frames behind the end.
TEST_F(VideoRefusal, of_an_mp4_whose_index_promises_more_frames) {
  std::string bytes = mp4(30);
  const std::size_t data = bytes.find("mdat") - 4;
  bytes.resize(data + 400);
  bytes.replace(data, 4, big_endian(400, 4));

  const Error error = refusal_of(bytes);

  EXPECT_EQ(error.kind(), ErrorKind::corrupt_file);
  EXPECT_THAT(error.what(), HasSubstr("the video is cut short or damaged behind its first"));
}

TEST_F(VideoRefusal, of_what_is_no_video_says_what_it_is) {
  EXPECT_THAT(refusal_of("").what(), HasSubstr("is an empty file, not a video"));
  EXPECT_THAT(refusal_of("<html></html>").what(), HasSubstr("is a web page, not a video"));
  EXPECT_EQ(refusal_of("words and words and words\n").kind(), ErrorKind::bad_input);
  EXPECT_THAT(refusal_of(std::string(2000, 'w') + "\n", "words.txt").what(),
              HasSubstr("is text, not a video"));
}

TEST_F(VideoRefusal, of_a_missing_file_or_a_folder_names_it) {
  EXPECT_EQ(refusal(folder_ / "нет.mp4").kind(), ErrorKind::bad_input);
  std::filesystem::create_directory(folder_ / "folder.mp4");
  EXPECT_EQ(refusal(folder_ / "folder.mp4").kind(), ErrorKind::bad_input);
}

TEST_F(VideoRefusal, of_damage_comes_with_its_time_and_never_as_a_spoilt_frame) {
  std::mt19937 random(5);
  BuiltVideo video{.encoder = "libx264",
                   .container = "mp4",
                   .pixel_format = "yuv420p",
                   .width = 64,
                   .height = 64,
                   .times = steady_times(40),
                   .full_range = false,
                   .options = {{"g", "10"}, {"preset", "ultrafast"}}};
  video.painter = [&](AVFrame& frame, std::int64_t index) {
    paint_shade(frame, index);
    for (int i = 0; i < 64 * frame.linesize[0]; ++i) frame.data[0][i] = static_cast<std::uint8_t>(random());
  };
  write_video(folder_ / "whole.mp4", video);
  std::string bytes = bytes_of(folder_ / "whole.mp4");
  for (std::size_t at = bytes.size() / 2; at < bytes.size() / 2 + 3000; at += 7)
    bytes[at] = static_cast<char>(bytes[at] ^ 0xa5);
  write_bytes(folder_ / "damaged.mp4", bytes);
  VideoReader whole(folder_ / "whole.mp4", kFilm), damaged(folder_ / "damaged.mp4", kFilm);
  int frames = 0;

  const Error error = error_of([&] {
    while (auto frame = damaged.next()) {
      ASSERT_THAT(frame->pixels, ::testing::ElementsAreArray(whole.next()->pixels)) << "frame " << frames;
      ++frames;
    }
  });

  EXPECT_EQ(error.kind(), ErrorKind::corrupt_file);
  EXPECT_THAT(error.what(), HasSubstr("damaged.mp4: the video is damaged at "));
  EXPECT_GT(frames, 5);
}

TEST_F(VideoRefusal, never_comes_from_a_name) {
  const std::string whole = mp4(3);
  for (const char* name : {"кино.mp4", "映画 'x' \"y\".mov", "a:b.bin", "100% [*?].mp4", "clip_%03d.mp4"}) {
    write_bytes(folder_ / name, whole);
    EXPECT_EQ(probe_video(folder_ / name, kFilm).frames, 3) << name;
    EXPECT_TRUE(VideoReader(folder_ / name, kFilm).next()) << name;
  }
}

// Whatever a file holds, there is a video or an Error.
TEST_F(VideoRefusal, is_the_worst_that_random_damage_brings) {
  const std::string whole = mp4(6);
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  for (int round = 0; round < 150; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 8; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    write_bytes(folder_ / "damaged.mp4", bytes);
    try {
      VideoReader reader(folder_ / "damaged.mp4", kFilm);
      for (int n = 0; n < 50 && reader.next(); ++n) {
      }
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::bad_input || error.kind() == ErrorKind::corrupt_file)
          << error.what() << ", seed " << seed << ", round " << round;
    }
  }
}

}  // namespace
}  // namespace sluice::media
