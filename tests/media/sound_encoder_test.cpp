#include "media/sound_encoder.h"

#include "decoded.h"
#include "media/probe.h"
#include "media/sound_rate.h"
#include "sound_files.h"
#include "support/throws_error.h"
#include "world.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace sluice::media {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Mp4SampleRate, is_the_sounds_own_where_AAC_knows_it) {
  for (const int rate : {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000})
    EXPECT_EQ(mp4_sample_rate(rate), rate);
  for (const int rate : {7350, 8001, 44000, 176'400, 192'000})
    EXPECT_EQ(mp4_sample_rate(rate), 48000) << rate;
}

TEST(CopiedSamples, are_those_given_and_silence_behind_them) {
  const TestTone tone(5000, 44100);
  std::vector<float> handed_over(5120);

  for (std::size_t begin = 0; begin < handed_over.size(); begin += 1024)
    copy_samples(tone.left, static_cast<std::int64_t>(begin), std::span(handed_over).subspan(begin, 1024));

  EXPECT_TRUE(std::equal(tone.left.begin(), tone.left.end(), handed_over.begin()));
  EXPECT_THAT(std::vector(handed_over.begin() + 5000, handed_over.end()), Each(0.0f));
}

TEST(CopiedSamples, are_clipped_to_what_a_sample_may_be) {
  std::vector<float> handed_over(3);

  copy_samples(std::vector<float>{1.5f, -2.0f, -1.0f}, 0, handed_over);

  EXPECT_THAT(handed_over, ElementsAre(1, -1, -1));
}

double worst_difference(const std::vector<float>& got, const std::vector<float>& want) {
  double worst = 0;
  for (std::size_t i = 2000; i + 2000 < want.size(); ++i)
    worst = std::max(worst, static_cast<double>(std::abs(got[i] - want[i])));
  return worst;
}

TEST(Mp4Sound, keeps_the_rate_and_the_samples_of_a_given_sound) {
  TestFolder folder;
  for (const int rate : {8000, 22050, 44100, 96000}) {
    const Channels noise = soft_noise(static_cast<std::size_t>(rate));
    write_gradients(folder / "a.mp4", {.width = 32,
                                       .height = 32,
                                       .rate = {8, 1},
                                       .frames = 8,
                                       .sound = StereoWave{rate, noise[0], noise[1]}});

    EXPECT_EQ(probe(folder / "a.mp4").sound.at(0).sample_rate, rate);
    const DecodedMedia media = decode(folder / "a.mp4");
    ASSERT_GE(media.left.size(), noise[0].size());
    EXPECT_EQ(delay_of(media.left, noise[0]), 0) << rate;
    EXPECT_EQ(delay_of(media.right, noise[1]), 0) << rate;
  }
}

TEST(Mp4Sound, is_resampled_where_AAC_does_not_know_its_rate) {
  TestFolder folder;
  const Channels noise = soft_noise(24'000);
  const ResampledSound fast = resample_sound({48'000, noise[0], noise[1]}, 192'000);
  write_gradients(folder / "a.mp4",
                  {.width = 32, .height = 32, .rate = {8, 1}, .frames = 4, .sound = fast.wave()});

  EXPECT_EQ(probe(folder / "a.mp4").sound.at(0).sample_rate, 48'000);
  EXPECT_NEAR(probe(folder / "a.mp4").sound.at(0).seconds, 0.5, 0.001);
  EXPECT_EQ(delay_of(decode(folder / "a.mp4").left, noise[0]), 0);
}

TEST(EncodedSound, refuses_a_rate_that_AAC_does_not_know_with_the_one_to_take) {
  const TestTone tone(4800, 12345);

  EXPECT_THAT([&] { encode_sound(tone.view(), 4800); },
              test::ThrowsError(ErrorKind::usage, HasSubstr("12345 Hz"), HasSubstr("48000 Hz")));
}

TEST(ResampledSound, lasts_as_long_and_sounds_the_same) {
  const TestTone tone(88'200, 176'400), wanted(24'000, 48'000);

  const ResampledSound sound = resample_sound(tone.view(), 48'000);

  EXPECT_EQ(sound.sample_rate, 48'000);
  ASSERT_EQ(sound.left.size(), 24'000u);
  EXPECT_LE(worst_difference(sound.left, wanted.left), 1e-3);
  EXPECT_LE(worst_difference(sound.right, wanted.right), 1e-3);
}

}  // namespace
}  // namespace sluice::media
