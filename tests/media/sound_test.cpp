#include "media/sound_fit.h"
#include "media/stereo_wave.h"
#include "media/wav_writer.h"
#include "world.h"

#include <gmock/gmock.h>

#include <limits>

namespace sluice::media {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SoundFit, pads_the_vocoders_sound_up_to_the_picture) {
  EXPECT_EQ(fit_sound(240'480, 48000, 121, {24, 1}),
            (SoundFit{.samples = 242'000, .silence = 1520, .cut = 0}));
}

TEST(SoundFit, is_exact_at_ntsc_rates) {
  EXPECT_EQ(fit_sound(242'242, 48000, 121, {24000, 1001}),
            (SoundFit{.samples = 242'242, .silence = 0, .cut = 0}));
}

TEST(SoundFit, cuts_what_is_longer_than_the_picture) {
  EXPECT_EQ(fit_sound(20'000, 48000, 9, {24, 1}), (SoundFit{.samples = 18'000, .silence = 0, .cut = 2000}));
}

TEST(SoundFit, does_not_overflow_at_long_clips_and_odd_rates) {
  // 10^12 frames at 999983/1001: 48000 * 1001 * 10^12 / 999983, where the product passes 2^63
  EXPECT_EQ(fit_sound(0, 48000, 1'000'000'000'000, {999'983, 1001}).samples, 48'048'816'829'886);
}

TEST(Pcm16, clips_and_truncates_toward_zero) {
  EXPECT_EQ(to_pcm16(1.0f), 32767);
  EXPECT_EQ(to_pcm16(-1.0f), -32767);
  EXPECT_EQ(to_pcm16(2.5f), 32767);
  EXPECT_EQ(to_pcm16(-9.0f), -32767);
  EXPECT_EQ(to_pcm16(0.5f), 16383);    // 16383.5
  EXPECT_EQ(to_pcm16(-0.5f), -16383);  // never -16384
}

TEST(Pcm16, exactly_gives_back_every_sample_of_16_bits) {
  for (int sample = -32768; sample <= 32767; ++sample)
    ASSERT_EQ(to_pcm16(static_cast<float>(sample) / 32768, Pcm::exact), sample);
}

TEST(Pcm16, exactly_rounds_to_the_nearest_and_clamps) {
  EXPECT_EQ(to_pcm16(0.6f / 32768, Pcm::exact), 1);
  EXPECT_EQ(to_pcm16(-0.6f / 32768, Pcm::exact), -1);
  EXPECT_EQ(to_pcm16(0.4f / 32768, Pcm::exact), 0);
  EXPECT_EQ(to_pcm16(1.0f, Pcm::exact), 32767);
  EXPECT_EQ(to_pcm16(-3.0f, Pcm::exact), -32768);
}

std::int64_t little_endian(const std::string& bytes, std::size_t at, std::size_t count) {
  std::int64_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value |= std::int64_t{static_cast<std::uint8_t>(bytes[at + i])} << (8 * i);
  return value;
}

TEST(Wav, has_the_header_of_pcm_s16le_stereo) {
  TestFolder folder;
  TestTone tone(1000);
  write_wav(folder / "声 'x'.wav", tone.view());

  std::string bytes = bytes_of(folder / "声 'x'.wav");

  ASSERT_EQ(bytes.size(), 44u + 4000u);
  EXPECT_EQ(bytes.substr(0, 4) + bytes.substr(8, 8) + bytes.substr(36, 4), "RIFFWAVEfmt data");
  EXPECT_EQ(little_endian(bytes, 4, 4), 36 + 4000);
  EXPECT_EQ(little_endian(bytes, 16, 4), 16);
  EXPECT_EQ(little_endian(bytes, 20, 2), 1);  // PCM
  EXPECT_EQ(little_endian(bytes, 22, 2), 2);
  EXPECT_EQ(little_endian(bytes, 24, 4), 48000);
  EXPECT_EQ(little_endian(bytes, 28, 4), 192'000);
  EXPECT_EQ(little_endian(bytes, 32, 2), 4);
  EXPECT_EQ(little_endian(bytes, 34, 2), 16);
  EXPECT_EQ(little_endian(bytes, 40, 4), 4000);
}

TEST(Wav, interleaves_left_and_right) {
  TestFolder folder;
  std::vector<float> left = {0.5f, -1.0f}, right = {-0.25f, 0.0f};
  write_wav(folder / "a.wav", {.sample_rate = 48000, .left = left, .right = right});

  std::string bytes = bytes_of(folder / "a.wav");

  auto sample = [&](int i) { return static_cast<std::int16_t>(little_endian(bytes, 44 + 2 * i, 2)); };
  EXPECT_EQ(sample(0), 16383);
  EXPECT_EQ(sample(1), -8191);
  EXPECT_EQ(sample(2), -32767);
  EXPECT_EQ(sample(3), 0);
}

TEST(Wav, leaves_nothing_when_a_sample_is_no_number) {
  TestFolder folder;
  TestTone tone(10);
  tone.left[3] = std::numeric_limits<float>::quiet_NaN();

  Error error = error_of([&] { write_wav(folder / "a.wav", tone.view()); });

  EXPECT_EQ(error.kind(), ErrorKind::non_finite);
  EXPECT_THAT(error.what(), HasSubstr("sample 3 of the left channel"));
  EXPECT_THAT(folder.names(), IsEmpty());
}

}  // namespace
}  // namespace sluice::media
