#include "media/encoders.h"
#include "media/mp4_writer.h"
#include "world.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <limits>
#include <random>

namespace sluice::media {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Mp4Options small_clip(std::int64_t frames) {
  return {.width = 64, .height = 64, .rate = {24, 1}, .frames = frames, .sound = {}};
}

// While it lives, no file may grow beyond `bytes`: the way a disk looks that is nearly full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal_before_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limited = before_;
    limited.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_before_);
  }

 private:
  rlimit before_{};
  void (*signal_before_)(int) = nullptr;
};

TEST(Mp4Failure, leaves_nothing_when_the_writer_is_dropped) {
  TestFolder folder;
  {
    Mp4Writer writer(folder / "clip.mp4", small_clip(9));
    writer.add_frame(gradient(64, 64, 0).view());
    EXPECT_EQ(folder.names().size(), 1u);  // the temporary file
    EXPECT_FALSE(std::filesystem::exists(folder / "clip.mp4"));
  }

  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(Mp4Failure, keeps_an_earlier_file_until_the_new_one_is_complete) {
  TestFolder folder;
  std::ofstream(folder / "clip.mp4") << "earlier";
  {
    Mp4Writer writer(folder / "clip.mp4", small_clip(9));
    writer.add_frame(gradient(64, 64, 0).view());
  }

  EXPECT_EQ(bytes_of(folder / "clip.mp4"), "earlier");
}

TEST(Mp4Failure, refuses_to_finish_with_too_few_frames) {
  TestFolder folder;
  {
    Mp4Writer writer(folder / "clip.mp4", small_clip(9));
    writer.add_frame(gradient(64, 64, 0).view());

    Error error = error_of([&] { writer.finish(); });

    EXPECT_EQ(error.kind(), ErrorKind::internal);
    EXPECT_THAT(error.what(), HasSubstr("clip.mp4: 1 frames came, 9 were promised"));
  }
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(Mp4Failure, refuses_a_frame_too_many) {
  TestFolder folder;
  Mp4Writer writer(folder / "clip.mp4", small_clip(1));
  writer.add_frame(gradient(64, 64, 0).view());

  EXPECT_EQ(error_of([&] { writer.add_frame(gradient(64, 64, 1).view()); }).kind(), ErrorKind::internal);
}

TEST(Mp4Failure, refuses_a_frame_of_another_size) {
  TestFolder folder;
  Mp4Writer writer(folder / "clip.mp4", small_clip(1));

  EXPECT_EQ(error_of([&] { writer.add_frame(gradient(32, 64, 0).view()); }).kind(), ErrorKind::internal);
}

TEST(Mp4Failure, refuses_odd_sizes_before_it_makes_a_file) {
  TestFolder folder;
  Mp4Options options = small_clip(1);
  options.width = 63;

  Error error = error_of([&] { Mp4Writer(folder / "clip.mp4", options); });

  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_THAT(error.what(), HasSubstr("63 x 64"));
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(Mp4Failure, names_the_first_sample_that_is_no_number) {
  TestFolder folder;
  TestTone tone(4800);
  tone.right[123] = std::numeric_limits<float>::quiet_NaN();
  Mp4Options options = small_clip(9);
  options.sound = tone.view();

  Error error = error_of([&] { Mp4Writer(folder / "clip.mp4", options); });

  EXPECT_EQ(error.kind(), ErrorKind::non_finite);
  EXPECT_THAT(error.what(), HasSubstr("sample 123 of the right channel"));
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(Mp4Failure, names_a_folder_that_is_missing) {
  TestFolder folder;

  Error error = error_of([&] { Mp4Writer(folder / "none/clip.mp4", small_clip(1)); });

  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_THAT(error.what(), HasSubstr("none"));
}

TEST(Mp4Failure, names_the_target_when_the_disk_is_full_and_leaves_nothing) {
  TestFolder folder;
  // Noise does not compress: 60 frames of it pass the limit long before the end.
  std::mt19937 random(1);
  TestImage noise(64, 64);
  {
    FileSizeLimit limit(50'000);
    Mp4Writer writer(folder / "clip.mp4", small_clip(60));

    Error error = error_of([&] {
      for (int i = 0; i < 60; ++i) {
        for (std::uint8_t& value : noise.pixels) value = static_cast<std::uint8_t>(random());
        writer.add_frame(noise.view());
      }
      writer.finish();
    });

    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.what(), HasSubstr((folder / "clip.mp4").string()));
    EXPECT_THAT(error.what(), HasSubstr("file too large"));
    EXPECT_THAT(error.hint(), HasSubstr("write elsewhere"));
  }
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(Encoders, are_all_there) {
  EXPECT_NO_THROW(check_encoders());
}

TEST(Encoders, are_named_when_missing_with_what_to_install) {
  std::vector<std::string> names = {"libx264", "no_such_encoder", "nor_this"};

  Error error = error_of([&] { check_encoders(names); });

  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_THAT(error.what(), HasSubstr("has no encoder no_such_encoder, nor_this"));
  EXPECT_THAT(error.hint(), HasSubstr("install"));
}

}  // namespace
}  // namespace sluice::media
