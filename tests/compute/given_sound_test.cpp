// Sound that the demo model is given: in the result sample for sample, and heard by the model.
#include "compute/frames.h"
#include "compute/given_world.h"
#include "media/probe.h"

#include <gmock/gmock.h>

namespace sluice::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kSeconds = 17.0 / 24;

class GivenSound : public ::testing::Test {
 protected:
  // The demo's clip with that sound: clip.mp4, clip.wav, report.
  Outcome clip(const Samples& sound, const Arguments& more = {}) {
    write_samples(folder_ / "given.wav", sound);
    return run(short_clip(with({"--audio", folder_ / "given.wav", "--wav", folder_ / "clip.wav", "-o",
                                folder_ / "clip.mp4", "--report", folder_ / "report", "--overwrite"},
                               more)));
  }

  TemporaryFolder folder_;
};

struct Length {
  const char* name;
  int sample_rate;
  double seconds;
};

class GivenSoundOf : public GivenSound, public ::testing::WithParamInterface<Length> {};

// As far as the clip goes.
TEST_P(GivenSoundOf, that_length_and_rate_is_written_sample_for_sample) {
  const auto& [name, rate, seconds] = GetParam();
  const Samples given = tones(rate, seconds, 1);

  ASSERT_THAT(clip(given), Succeeds());

  const Samples made = read_samples(folder_ / "clip.wav");
  const auto most = static_cast<std::size_t>(std::lrint(kSeconds * rate)) * 2;
  EXPECT_EQ(made.sample_rate, rate);
  EXPECT_EQ(made.channels, 2);
  EXPECT_EQ(made.values,
            std::vector<std::int16_t>(
                given.values.begin(),
                given.values.begin() + static_cast<std::ptrdiff_t>(std::min(most, given.values.size()))));
  const media::MediaInfo info = media::probe(folder_ / "clip.mp4");
  ASSERT_EQ(info.sound.size(), 1u);
  EXPECT_EQ(info.sound[0].sample_rate, rate);
  EXPECT_NEAR(info.sound[0].seconds, kSeconds, 1024.0 / rate);
  EXPECT_EQ(info.video.at(0).frames, 17);
}

INSTANTIATE_TEST_SUITE_P(Length, GivenSoundOf,
                         ::testing::Values(Length{"as_the_clip", 48000, kSeconds},
                                           Length{"shorter", 48000, 0.3}, Length{"longer", 48000, 1.5},
                                           Length{"at_44100", 44100, 0.8}, Length{"at_22050", 22050, 0.5},
                                           Length{"at_96000", 96000, 0.8}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(GivenSound, that_is_longer_or_shorter_is_told_with_both_lengths) {
  auto warned = [&](double seconds, const std::string& text) {
    const Outcome outcome = clip(tones(48000, seconds, 1));
    ASSERT_THAT(outcome, Succeeds());
    EXPECT_THAT(outcome.err, HasSubstr("sluice: warning: " + (folder_ / "given.wav").string() + ": " + text));
    EXPECT_THAT(read_json(folder_ / "report").at("warnings"), Contains(HasSubstr(text)));
  };

  warned(1.5, "1.50 s of sound are cut to the clip's 0.71 s");
  EXPECT_EQ(read_json(folder_ / "report").at("sound").at("silence_added"), 0);
  warned(0.25, "0.25 s of sound, silence behind them to the clip's 0.71 s");
  EXPECT_EQ(read_json(folder_ / "report").at("sound").at("samples"), 34000);
  EXPECT_EQ(read_json(folder_ / "report").at("sound").at("silence_added"), 34000 - 12000);
}

TEST_F(GivenSound, is_heard_another_sound_gives_another_picture) {
  auto latents = [&](const Samples& sound, const std::string& name) {
    const Outcome outcome = clip(sound, {"--latents", folder_ / name});
    EXPECT_THAT(outcome, Succeeds());
    return read_values(folder_ / name).at("video_latents");
  };
  Samples silence = tones(48000, 0.8, 1);
  std::fill(silence.values.begin(), silence.values.end(), std::int16_t{0});

  const Values tone = latents(tones(48000, 0.8, 1), "tone");

  EXPECT_NE(latents(silence, "silence"), tone);
  EXPECT_EQ(latents(tones(48000, 0.8, 1), "again"), tone);
  // What is behind the clip's end is not heard.
  EXPECT_EQ(latents(tones(48000, 1.6, 1), "longer"), tone);
}

TEST_F(GivenSound, says_how_long_the_clip_is_where_nothing_else_does) {
  ASSERT_THAT(run(with(Arguments{"generate", "--model", demo_model()},
                       {"--text-encoder", demo_text_encoder(), "--prompt", "a", "--width", "64", "--height",
                        "64", "--variant", "distilled", "--threads", "1", "--audio",
                        earlier_clip() / "clip.wav", "-o", folder_ / "clip.mp4"})),
              Succeeds());

  EXPECT_EQ(media::probe(folder_ / "clip.mp4").video.at(0).frames, 17);  // 0.69 s are 16.6 frames
}

TEST_F(GivenSound, of_a_video_is_taken_too_and_told_where_only_its_frames_are) {
  const fs::path video = earlier_clip() / "clip.mp4";

  const Outcome both = run(short_clip({"--video", video, "--audio", video, "-o", folder_ / "both.mp4"}));
  const Outcome frames = run(short_clip({"--video", video, "-o", folder_ / "frames.mp4"}));

  ASSERT_THAT(both, Succeeds());
  EXPECT_THAT(both.err, ::testing::Not(HasSubstr("warning")));
  ASSERT_THAT(frames, Succeeds());
  EXPECT_THAT(frames.err, HasSubstr("its sound is not used (--audio " + video.string() + " would)"));
}

TEST_F(GivenSound, is_left_out_of_the_file_and_heard_all_the_same_without_audio) {
  const Samples sound = tones(48000, 0.8, 1);
  ASSERT_THAT(clip(sound, {"--frames-dir", folder_ / "with"}), Succeeds());
  ASSERT_THAT(run(short_clip({"--audio", folder_ / "given.wav", "--no-audio", "-o", folder_ / "silent.mp4",
                              "--frames-dir", folder_ / "silent"})),
              Succeeds());

  EXPECT_THAT(media::probe(folder_ / "silent.mp4").sound, IsEmpty());
  EXPECT_TRUE(same_files(folder_ / "with", folder_ / "silent"));
}

}  // namespace
}  // namespace sluice::test
