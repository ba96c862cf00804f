#include "media/mp4_writer.h"

#include "decoded.h"
#include "media/probe.h"
#include "media/sound_fit.h"
#include "world.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>

namespace sluice::media {
namespace {

using ::testing::Combine;
using ::testing::Values;

constexpr int kHeight = 64, kWidth = 96;

Mp4Options silent(std::int64_t frames, Rational rate) {
  return {.width = kWidth, .height = kHeight, .rate = rate, .frames = frames, .sound = {}};
}

// Clips of every length and rate that people ask for, with the sound that the vocoder makes for them.
class Mp4Clip : public ::testing::TestWithParam<std::tuple<Rational, int>> {
 protected:
  Rational rate() const { return std::get<0>(GetParam()); }
  std::int64_t frames() const { return std::get<1>(GetParam()); }
  double seconds() const { return static_cast<double>(frames()) / rate().value(); }

  std::filesystem::path write() {
    TestTone tone(vocoder_samples(frames(), rate()));
    Mp4Options options = silent(frames(), rate());
    options.sound = tone.view();
    write_gradients(folder_ / "clip.mp4", options);
    return folder_ / "clip.mp4";
  }

  TestFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(RatesAndLengths, Mp4Clip,
                         Combine(Values(Rational{24, 1}, Rational{24000, 1001}, Rational{30, 1},
                                        Rational{25, 2}, Rational{60000, 1001}),
                                 Values(1, 9, 17, 121)),
                         [](const auto& info) {
                           const Rational& rate = std::get<0>(info.param);
                           return std::to_string(rate.num) + "_" + std::to_string(rate.den) + "_frames_" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST_P(Mp4Clip, has_one_h264_and_one_aac_stream_with_exact_count_and_rate) {
  MediaInfo info = probe(write());

  ASSERT_EQ(info.video.size(), 1u);
  EXPECT_EQ(info.video[0].codec, "h264");
  EXPECT_EQ(info.video[0].frames, frames());
  EXPECT_EQ(info.video[0].rate, rate());
  ASSERT_EQ(info.sound.size(), 1u);
  EXPECT_EQ(info.sound[0].codec, "aac");
  EXPECT_EQ(info.sound[0].sample_rate, 48000);
  EXPECT_EQ(info.sound[0].channels, 2);
}

TEST_P(Mp4Clip, starts_both_streams_at_zero_and_ends_them_together) {
  MediaInfo info = probe(write());

  EXPECT_EQ(info.video.at(0).start_seconds, 0);
  EXPECT_EQ(info.sound.at(0).start_seconds, 0);
  EXPECT_NEAR(info.video.at(0).seconds, seconds(), 1e-4);
  EXPECT_NEAR(info.sound.at(0).seconds, seconds(), 1e-4);
  EXPECT_NEAR(info.seconds, seconds(), 1e-3);
}

TEST_P(Mp4Clip, decodes_to_every_frame_at_its_exact_time) {
  DecodedMedia media = decode(write());

  ASSERT_EQ(static_cast<std::int64_t>(media.frames.size()), frames());
  for (std::size_t i = 0; i < media.frames.size(); ++i) {
    EXPECT_NEAR(media.frames[i].seconds, static_cast<double>(i) / rate().value(), 1e-9);
  }
}

TEST_P(Mp4Clip, decodes_to_sound_as_long_as_the_picture_or_up_to_its_last_packet) {
  DecodedMedia media = decode(write());

  // The container states the exact length; not every decoder cuts the last packet's 1024 samples to it.
  std::int64_t exact = fit_sound(0, 48000, frames(), rate()).samples;
  EXPECT_GE(static_cast<std::int64_t>(media.left.size()), exact);
  EXPECT_LT(static_cast<std::int64_t>(media.left.size()), exact + 1024);
}

TEST(Mp4Writer, keeps_flat_colours_within_two_codes) {
  constexpr int kSide = 32;
  const std::array<std::array<std::uint8_t, 3>, 12> colours = {{{255, 0, 0},
                                                                {0, 255, 0},
                                                                {0, 0, 255},
                                                                {255, 255, 255},
                                                                {0, 0, 0},
                                                                {128, 128, 128},
                                                                {200, 30, 90},
                                                                {30, 90, 200},
                                                                {250, 240, 20},
                                                                {12, 200, 180},
                                                                {77, 66, 55},
                                                                {180, 160, 140}}};
  TestFolder folder;
  TestImage image(3 * kSide, 4 * kSide);
  for (int i = 0; i < 12; ++i) image.fill(i / 4 * kSide, i % 4 * kSide, kSide, colours[i]);

  Mp4Writer writer(folder / "flat.mp4",
                   {.width = image.width, .height = image.height, .rate = {24, 1}, .frames = 9, .sound = {}});
  for (int i = 0; i < 9; ++i) writer.add_frame(image.view());
  writer.finish();

  for (const DecodedFrame& frame : decode(folder / "flat.mp4").frames) {
    for (int i = 0; i < 12; ++i) {
      std::array<double, 3> mean = frame.mean_rgb(i / 4 * kSide + 8, i % 4 * kSide + 8, kSide - 16);
      for (int channel = 0; channel < 3; ++channel) {
        EXPECT_NEAR(mean[channel], colours[i][channel], 2) << "colour " << i << " channel " << channel;
      }
    }
  }
}

TEST(Mp4Writer, tags_the_colours_as_bt709_limited_range) {
  TestFolder folder;
  write_gradients(folder / "clip.mp4", silent(9, {24, 1}));

  VideoStream video = probe(folder / "clip.mp4").video.at(0);

  EXPECT_EQ(video.pixel_format, "yuv420p");
  EXPECT_EQ(video.matrix, "bt709");
  EXPECT_EQ(video.primaries, "bt709");
  EXPECT_EQ(video.transfer, "bt709");
  EXPECT_EQ(video.range, "tv");
}

TEST(Mp4Writer, writes_one_stream_when_no_sound_is_given) {
  TestFolder folder;
  write_gradients(folder / "clip.mp4", silent(9, {24, 1}));

  MediaInfo info = probe(folder / "clip.mp4");

  EXPECT_EQ(info.video.size(), 1u);
  EXPECT_EQ(info.sound.size(), 0u);
}

// Energy of the difference when the decoded sound is read `lag` samples later, without the ends.
double relative_error(std::span<const float> decoded, std::span<const float> given, int lag) {
  double error = 0, energy = 0;
  for (std::size_t i = 2048; i + 2048 < given.size(); ++i) {
    error += std::pow(decoded[i + lag] - given[i], 2);
    energy += std::pow(given[i], 2);
  }
  return error / energy;
}

float loudest(std::span<const float> samples) {
  float most = 0;
  for (float sample : samples) most = std::max(most, std::abs(sample));
  return most;
}

TEST(Mp4Writer, keeps_the_sound_in_its_place_and_ends_it_with_silence) {
  TestFolder folder;
  TestTone tone(24000);
  Mp4Options options = silent(24, {24, 1});
  options.sound = tone.view();
  write_gradients(folder / "clip.mp4", options);

  DecodedMedia media = decode(folder / "clip.mp4");

  double there = relative_error(media.left, tone.left, 0);
  EXPECT_LT(there, 0.01);
  EXPECT_LT(there, relative_error(media.left, tone.left, -1));
  EXPECT_LT(there, relative_error(media.left, tone.left, 1));
  EXPECT_LT(relative_error(media.right, tone.right, 0), 0.01);
  EXPECT_LT(loudest(std::span(media.left).subspan(26'000)), 1e-3);
}

TEST(Mp4Writer, cuts_sound_that_is_longer_than_the_picture_and_never_the_picture) {
  TestFolder folder;
  TestTone tone(100'000);
  Mp4Options options = silent(9, {24, 1});
  options.sound = tone.view();
  write_gradients(folder / "clip.mp4", options);

  DecodedMedia media = decode(folder / "clip.mp4");

  EXPECT_EQ(media.frames.size(), 9u);
  EXPECT_GE(media.left.size(), 18'000u);
  EXPECT_LT(media.left.size(), 18'000u + 1024);
}

TEST(Mp4Writer, keeps_a_lower_sampling_rate) {
  TestFolder folder;
  TestTone tone(6000, 16000);
  Mp4Options options = silent(9, {24, 1});
  options.sound = tone.view();
  write_gradients(folder / "clip.mp4", options);

  MediaInfo info = probe(folder / "clip.mp4");

  EXPECT_EQ(info.sound.at(0).sample_rate, 16000);
  EXPECT_NEAR(info.sound.at(0).seconds, 9.0 / 24, 1e-3);
}

TEST(Mp4Writer, writes_the_same_bytes_twice) {
  TestFolder folder;
  TestTone tone(60'000);
  Mp4Options options = silent(33, {24000, 1001});
  options.sound = tone.view();
  options.metadata = {{"title", "twice"}, {"sluice.seed", "42"}};

  write_gradients(folder / "a.mp4", options);
  write_gradients(folder / "b.mp4", options);

  EXPECT_TRUE(bytes_of(folder / "a.mp4") == bytes_of(folder / "b.mp4"));
}

TEST(Mp4Writer, puts_the_index_in_front_of_the_pictures) {
  TestFolder folder;
  write_gradients(folder / "clip.mp4", silent(9, {24, 1}));

  std::string bytes = bytes_of(folder / "clip.mp4");

  EXPECT_LT(bytes.find("moov"), bytes.find("mdat"));
}

TEST(Mp4Writer, interleaves_sound_with_the_picture_in_a_long_clip) {
  TestFolder folder;
  TestTone tone(20 * 48000);
  Mp4Options options = silent(480, {24, 1});
  options.sound = tone.view();
  write_gradients(folder / "clip.mp4", options);

  // A reader that plays in file order never holds more than a second of one stream ahead of the other.
  EXPECT_LT(widest_interleaving_gap(folder / "clip.mp4"), 1.0);
}

TEST(Mp4Writer, takes_any_valid_name) {
  TestFolder folder;
  for (const char* name : {"映画 “夜”.mp4", "it's a \"clip\" %03d.mp4", "a:b?c#d.mp4", "é ü.mp4", "-o.mp4"}) {
    write_gradients(folder / name, silent(1, {24, 1}));

    EXPECT_EQ(probe(folder / name).video.at(0).frames, 1) << name;
  }
}

}  // namespace
}  // namespace sluice::media
