#include "media/sound_reader.h"

#include "media/wav_writer.h"
#include "sound_files.h"
#include "support/throws_error.h"
#include "world.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <limits>
#include <numeric>
#include <random>

namespace sluice::media {
namespace {

using test::ThrowsError;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kAll = 1e6;  // seconds

class SoundReader : public testing::Test {
 protected:
  std::filesystem::path wav(const WavFile& file) {
    write_bytes(folder_ / "a.wav", file.bytes());
    return folder_ / "a.wav";
  }
  std::filesystem::path encoded(const std::string& name, const SoundFormat& format,
                                const Channels& channels) {
    encode_sound_file(folder_ / name, format, channels);
    return folder_ / name;
  }
  std::filesystem::path cut(const std::filesystem::path& path, std::size_t size) {
    write_bytes(path, bytes_of(path).substr(0, size));
    return path;
  }

  TestFolder folder_;
};

TEST_F(SoundReader, divides_integers_of_n_bits_by_two_to_the_n_minus_one) {
  for (const int bits : {8, 16, 24, 32}) {
    const std::int64_t most = (std::int64_t{1} << (bits - 1)) - 1, unit = std::int64_t{1} << (bits - 8);
    const WavFile file{.bits = bits,
                       .samples = stored_samples({most, -most - 1, 3 * unit, -5 * unit, 0, unit}, bits)};

    const Sound sound = read_sound(wav(file), kAll);

    const auto whole = static_cast<float>(-static_cast<double>(-most - 1));
    EXPECT_THAT(sound.left, ElementsAre(static_cast<float>(most) / whole, 3.0f / 128, 0)) << bits;
    EXPECT_THAT(sound.right, ElementsAre(-1, -5.0f / 128, 1.0f / 128)) << bits;
    EXPECT_EQ(sound.stored_bits, bits);
    EXPECT_THAT(sound.conversions, IsEmpty());
  }
}

TEST_F(SoundReader, takes_floats_as_they_are_even_beyond_one) {
  const Sound sound = read_sound(
      wav({.bits = 32, .is_float = true, .samples = stored_floats({0.1f, -1.5f, 1e-20f, 3})}), kAll);

  EXPECT_THAT(sound.left, ElementsAre(0.1f, 1e-20f));
  EXPECT_THAT(sound.right, ElementsAre(-1.5f, 3));
  EXPECT_EQ(sound.stored_bits, 0);
}

TEST_F(SoundReader, fills_both_channels_with_mono_and_says_so) {
  const Sound sound = read_sound(wav({.channels = 1, .samples = stored_samples({16384, -8192}, 16)}), kAll);

  EXPECT_THAT(sound.left, ElementsAre(0.5f, -0.25f));
  EXPECT_EQ(sound.right, sound.left);
  EXPECT_THAT(sound.conversions, ElementsAre("mono in both channels"));
}

// One sample of full size in each channel in turn: left, right, centre, low frequencies, back left and right.
std::vector<float> impulses() {
  std::vector<float> samples(36);
  for (std::size_t i = 0; i < 6; ++i) samples[7 * i] = 1;
  return samples;
}

TEST_F(SoundReader, mixes_five_point_one_down_without_clipping_and_says_so) {
  const Sound sound = read_sound(wav({.channels = 6,
                                      .bits = 32,
                                      .is_float = true,
                                      .samples = stored_floats(impulses()),
                                      .extensible = true}),
                                 kAll);

  const float direct = 1 / (1 + 2 * std::sqrt(0.5f)), behind = direct * std::sqrt(0.5f);
  const std::vector<float> left = {direct, 0, behind, 0, behind, 0},
                           right = {0, direct, behind, 0, 0, behind};
  ASSERT_EQ(sound.left.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_FLOAT_EQ(sound.left[i], left[i]) << i;
    EXPECT_FLOAT_EQ(sound.right[i], right[i]) << i;
  }
  EXPECT_THAT(sound.conversions, ElementsAre(HasSubstr("5.1")));
  EXPECT_THAT(sound.conversions, ElementsAre(HasSubstr("mixed down to stereo")));
}

TEST_F(SoundReader, takes_channels_without_names_as_the_usual_ones) {
  WavFile file{.channels = 6, .bits = 32, .is_float = true, .samples = stored_floats(impulses())};
  const Sound unnamed = read_sound(wav(file), kAll);
  file.extensible = true;

  EXPECT_EQ(unnamed.left, read_sound(wav(file), kAll).left);
}

TEST_F(SoundReader, refuses_channels_that_are_no_loudspeakers) {
  const auto path = wav({.channels = 40, .samples = std::string(80 * 4, '\1')});

  EXPECT_THAT([&] { read_sound(path, kAll); },
              ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("a.wav"), HasSubstr("40 channels")),
                          HasSubstr("stereo")));
}

TEST_F(SoundReader, reads_the_lossless_formats_sample_for_sample) {
  std::mt19937 random(7);
  Channels channels(2, std::vector<float>(30'000));
  for (auto& channel : channels) {
    for (float& sample : channel) sample = static_cast<float>(static_cast<std::int16_t>(random())) / 32768;
  }
  for (const auto& [name, encoder, format, bits] : {std::tuple{"a.flac", "flac", "s16", 16},
                                                    {"b.flac", "flac", "s32", 24},
                                                    {"a.m4a", "alac", "s16p", 16},
                                                    {"b.m4a", "alac", "s32p", 24},
                                                    {"a.wav", "pcm_s16le", "s16", 16},
                                                    {"b.wav", "pcm_f32le", "flt", 0},
                                                    {"a.aiff", "pcm_s16be", "s16", 16}}) {
    const Sound sound = read_sound(encoded(name, {encoder, format, 44100}, channels), kAll);

    EXPECT_EQ(sound.left, channels[0]) << name;
    EXPECT_EQ(sound.right, channels[1]) << name;
    EXPECT_EQ(sound.stored_bits, bits) << name;
    EXPECT_EQ(sound.sample_rate, 44100) << name;
  }
}

TEST_F(SoundReader, leaves_out_what_encoders_of_lossy_formats_put_in_front_and_behind) {
  const Channels channels = soft_noise(20'000);
  for (const auto& [name, encoder, format] : {std::tuple{"a.mp3", "libmp3lame", "fltp"},
                                              {"a.ogg", "libvorbis", "fltp"},
                                              {"a.opus", "libopus", "flt"},
                                              {"a.m4a", "aac", "fltp"}}) {
    const Sound sound = read_sound(encoded(name, {encoder, format, 48000}, channels), kAll);

    EXPECT_GE(sound.left.size(), 20'000u) << name;
    EXPECT_LT(sound.left.size(), 20'000u + 1024) << name;  // AAC's last frame is whole
    EXPECT_EQ(delay_of(sound.left, channels[0]), 0) << name;
    EXPECT_EQ(delay_of(sound.right, channels[1]), 0) << name;
    EXPECT_EQ(sound.stored_bits, 0) << name;
  }
}

TEST_F(SoundReader, reads_the_sound_of_a_video) {
  const Channels noise = soft_noise(6000);
  write_gradients(folder_ / "a.mp4", {.width = 32,
                                      .height = 32,
                                      .rate = {8, 1},
                                      .frames = 1,
                                      .sound = StereoWave{48000, noise[0], noise[1]}});

  const Sound sound = read_sound(folder_ / "a.mp4", kAll);

  EXPECT_GE(sound.left.size(), 6000u);
  EXPECT_EQ(delay_of(sound.left, noise[0]), 0);
}

TEST_F(SoundReader, takes_rates_from_8_to_192_kHz) {
  for (const int rate : {8000, 11025, 44100, 96000, 192'000}) {
    const auto path = wav({.sample_rate = rate, .samples = std::string(400, '\1')});

    EXPECT_EQ(read_sound(path, kAll).sample_rate, rate);
  }
  for (const int rate : {1000, 7999, 192'001, 384'000}) {
    const auto path = wav({.sample_rate = rate, .samples = std::string(400, '\1')});

    EXPECT_THAT([&] { probe_sound(path); },
                ThrowsError(ErrorKind::bad_input,
                            HasSubstr(fmt::format("sound at {} Hz, outside 8000 to 192000 Hz", rate)),
                            HasSubstr("48000")));
  }
}

TEST_F(SoundReader, reads_no_more_seconds_than_asked_for) {
  const Channels channels = soft_noise(48'000);
  const auto path = encoded("a.flac", {"flac", "s16", 48000}, channels);
  const Sound whole = read_sound(path, kAll);

  const Sound start = read_sound(path, 0.25);

  ASSERT_EQ(start.left.size(), 12'000u);
  EXPECT_TRUE(std::equal(start.left.begin(), start.left.end(), whole.left.begin()));
  EXPECT_EQ(start.right.size(), 12'000u);
}

TEST_F(SoundReader, does_not_mind_an_end_it_does_not_read) {
  const auto path = wav({.samples = std::string(400'000, '\1')});
  cut(path, 300'000);

  EXPECT_EQ(read_sound(path, 1).left.size(), 48'000u);
}

TEST_F(SoundReader, reads_a_wav_file_whose_header_was_written_before_its_size_was_known) {
  for (const std::int64_t told : {std::int64_t{0xffff'ffff}, std::int64_t{0x7fff'f000}}) {
    const auto path = wav({.samples = std::string(10'000, '\1'), .told = told});

    EXPECT_EQ(read_sound(path, kAll).left.size(), 2500u) << told;
  }
}

TEST_F(SoundReader, tells_before_decoding_what_comes) {
  const SoundInfo info =
      probe_sound(wav({.sample_rate = 44100, .channels = 1, .bits = 24, .samples = std::string(300, '\1')}));
  const SoundInfo lossy = probe_sound(encoded("a.mp3", {"libmp3lame", "fltp", 48000}, soft_noise(48'000)));

  EXPECT_EQ(info.codec, "pcm_s24le");
  EXPECT_EQ(info.channels, 1);
  EXPECT_EQ(info.samples, 100);
  EXPECT_TRUE(info.exact);
  EXPECT_DOUBLE_EQ(info.seconds(), 100.0 / 44100);
  EXPECT_EQ(lossy.codec, "mp3");
  EXPECT_NEAR(lossy.seconds(), 1, 0.1);
  EXPECT_FALSE(lossy.exact);
}

TEST_F(SoundReader, refuses_what_holds_no_sound_naming_file_and_remedy) {
  write_bytes(folder_ / "empty.wav", "");
  write_bytes(folder_ / "text.wav", "this is no sound, however it is named");
  write_gradients(folder_ / "mute.mp4", {.width = 32, .height = 32, .rate = {8, 1}, .frames = 2});
  wav({});
  for (const auto& [name, what] : {std::pair{"missing.wav", "missing.wav"},
                                   {"empty.wav", "is empty"},
                                   {"text.wav", "is no readable media file"},
                                   {"mute.mp4", "has no sound"},
                                   {"a.wav", "a.wav"}}) {
    for (const bool decode : {false, true}) {
      const Error error = error_of(
          [&] { decode ? (void)read_sound(folder_ / name, kAll) : (void)probe_sound(folder_ / name); });

      EXPECT_EQ(error.kind(), ErrorKind::bad_input) << name;
      EXPECT_THAT(error.what(), AllOf(HasSubstr(name), HasSubstr(what)));
      EXPECT_THAT(error.hint(), Not(IsEmpty())) << name;
    }
  }
  EXPECT_THAT([&] { read_sound(folder_.path(), kAll); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("folder")));
}

TEST_F(SoundReader, refuses_wav_files_that_are_cut_anywhere_with_the_time) {
  for (const std::size_t size : {44u + 4096u, 44u + 8192u, 30'000u, 30'001u}) {
    const auto path = wav({.samples = stored_samples(std::vector<std::int64_t>(20'000, 77), 16)});
    cut(path, size);
    const double seconds = static_cast<double>((size - 44) / 4) / 48000;

    EXPECT_THAT([&] { read_sound(path, kAll); },
                ThrowsError(ErrorKind::corrupt_file, HasSubstr(fmt::format("at {:.3f} s", seconds)),
                            HasSubstr("again")))
        << size;
  }
}

TEST_F(SoundReader, refuses_cut_files_of_every_format_with_the_time) {
  const Channels channels = soft_noise(96'000);
  for (const auto& [name, encoder, format] : {std::tuple{"a.flac", "flac", "s16"},
                                              {"a.mp3", "libmp3lame", "fltp"},
                                              {"a.ogg", "libvorbis", "fltp"},
                                              {"a.opus", "libopus", "flt"},
                                              {"a.m4a", "aac", "fltp"},
                                              {"a.mka", "libvorbis", "fltp"},
                                              {"a.aiff", "pcm_s16be", "s16"}}) {
    const auto path = encoded(name, {encoder, format, 48000}, channels);
    cut(path, std::filesystem::file_size(path) * 6 / 10);

    EXPECT_THAT([&] { read_sound(path, kAll); },
                ThrowsError(ErrorKind::corrupt_file,
                            AllOf(HasSubstr(name), ::testing::ContainsRegex("at [01]\\.[0-9]+ s")),
                            HasSubstr("again")))
        << name;
  }
}

TEST_F(SoundReader, refuses_damaged_files_with_the_time) {
  const Channels channels = soft_noise(96'000);
  for (const auto& [name, encoder, format] : {std::tuple{"a.flac", "flac", "s16"},
                                              {"a.ogg", "libvorbis", "fltp"},
                                              {"a.opus", "libopus", "flt"},
                                              {"a.m4a", "aac", "fltp"}}) {
    const auto path = encoded(name, {encoder, format, 48000}, channels);
    std::string bytes = bytes_of(path);
    for (std::size_t i = 0; i < 60; ++i) bytes[bytes.size() * 6 / 10 + i] ^= '\x5a';
    write_bytes(path, bytes);

    EXPECT_THAT(
        [&] { read_sound(path, kAll); },
        ThrowsError(ErrorKind::corrupt_file, AllOf(HasSubstr(name), HasSubstr(" s")), HasSubstr("again")))
        << name;
  }
}

TEST_F(SoundReader, refuses_samples_that_are_no_numbers_naming_the_first) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const auto path =
        wav({.bits = 32, .is_float = true, .samples = stored_floats({0, 0, 0.5f, bad, bad, 0})});

    EXPECT_THAT(
        [&] { read_sound(path, kAll); },
        ThrowsError(ErrorKind::non_finite,
                    AllOf(HasSubstr("a.wav"), HasSubstr("sample 2 of the left channel")), Not(IsEmpty())));
  }
}

TEST_F(SoundReader, gives_16_bit_sound_that_is_written_as_it_was) {
  std::vector<std::int64_t> samples(65'536);
  std::iota(samples.begin(), samples.end(), -32'768);
  const auto path = wav({.sample_rate = 44100, .samples = stored_samples(samples, 16)});

  write_wav(folder_ / "again.wav", read_sound(path, kAll).wave());

  EXPECT_TRUE(bytes_of(folder_ / "again.wav") == bytes_of(path));
}

TEST_F(SoundReader, gives_24_bit_sound_that_is_rounded_to_the_nearest) {
  const auto path =
      wav({.bits = 24, .samples = stored_samples({127, 129, -127, -129, 256 * 9 + 127, 8'388'607}, 24)});

  write_wav(folder_ / "again.wav", read_sound(path, kAll).wave());

  EXPECT_EQ(bytes_of(folder_ / "again.wav").substr(44), stored_samples({0, 1, 0, -1, 9, 32'767}, 16));
}

}  // namespace
}  // namespace sluice::media
