// What the mp4 says about itself must be what was asked for.
#include "compute/world.h"
#include "media/probe.h"

#include <sluice/units.h>

#include <gmock/gmock.h>

namespace sluice::test {
namespace {

struct Rate {
  const char* flag;
  Rational rate;
};

class MediaAt : public ::testing::TestWithParam<Rate> {};

TEST_P(MediaAt, has_the_frames_and_rate_asked_for_and_sound_of_the_same_length) {
  TemporaryFolder folder;
  const double frame = 1 / GetParam().rate.value();

  ASSERT_THAT(run(with(demo_clip(), {"-o", folder / "clip.mp4", "--fps", GetParam().flag})), Succeeds());

  const media::MediaInfo info = media::probe(folder / "clip.mp4");
  ASSERT_EQ(info.video.size(), 1u);
  ASSERT_EQ(info.sound.size(), 1u);
  EXPECT_EQ(info.video[0].codec, "h264");
  EXPECT_EQ(info.video[0].width, 64);
  EXPECT_EQ(info.video[0].height, 64);
  EXPECT_EQ(info.video[0].frames, 17);
  EXPECT_EQ(info.video[0].rate, GetParam().rate);
  EXPECT_NEAR(info.video[0].seconds, 17 * frame, 1e-3);
  EXPECT_EQ(info.sound[0].codec, "aac");
  EXPECT_EQ(info.sound[0].sample_rate, 48000);
  EXPECT_EQ(info.sound[0].channels, 2);
  EXPECT_NEAR(info.sound[0].seconds, info.video[0].seconds, frame);
  EXPECT_NEAR(info.seconds, 17 * frame, frame);
}

INSTANTIATE_TEST_SUITE_P(Rate, MediaAt,
                         ::testing::Values(Rate{"24", {24, 1}}, Rate{"23.976", {24000, 1001}},
                                           Rate{"30", {30, 1}}, Rate{"25/2", {25, 2}}),
                         [](const auto& info) { return "number_" + std::to_string(info.index); });

TEST(Media, of_one_frame_is_a_clip_too) {
  TemporaryFolder folder;

  ASSERT_THAT(run(with(demo_clip(), {"-o", folder / "clip.mp4", "--frames", "1"})), Succeeds());

  const media::MediaInfo info = media::probe(folder / "clip.mp4");
  EXPECT_EQ(info.video.at(0).frames, 1);
  EXPECT_EQ(info.sound.size(), 1u);
}

TEST(Media, without_sound_has_one_stream_and_the_same_picture) {
  TemporaryFolder folder;

  ASSERT_THAT(run(with(demo_clip(), {"-o", folder / "sound.mp4", "--frames-dir", folder / "sound"})),
              Succeeds());
  ASSERT_THAT(
      run(with(demo_clip(), {"-o", folder / "silent.mp4", "--frames-dir", folder / "silent", "--no-audio"})),
      Succeeds());

  const media::MediaInfo info = media::probe(folder / "silent.mp4");
  EXPECT_EQ(info.video.size(), 1u);
  EXPECT_EQ(info.sound.size(), 0u);
  EXPECT_TRUE(same_files(folder / "sound", folder / "silent"));
}

}  // namespace
}  // namespace sluice::test
