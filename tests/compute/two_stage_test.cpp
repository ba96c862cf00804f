// Half size first, then twice that: sizes, counts, what is given in both stages, upsamplers that do not fit.
#include "compute/frames.h"
#include "compute/given_world.h"
#include "media/probe.h"

#include <gmock/gmock.h>

namespace sluice::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TwoStage : public ::testing::Test {
 protected:
  Arguments clip(const Arguments& more) const {
    return given_clip(with({"--two-stage", "--upsampler", upsampler_, "--width", "128"}, more));
  }

  TemporaryFolder folder_;
  fs::path upsampler_ = write_upsampler(folder_ / "upsampler.safetensors");
};

TEST_F(TwoStage, makes_exactly_the_size_and_the_frames_asked_for) {
  const Outcome outcome = run(clip({"-o", folder_ / "clip.mp4", "--frames-dir", folder_ / "frames", "--trace",
                                    folder_ / "trace", "--report", folder_ / "report"}));

  ASSERT_THAT(outcome, Succeeds());
  const media::MediaInfo info = media::probe(folder_ / "clip.mp4");
  EXPECT_EQ(info.video.at(0).width, 128);
  EXPECT_EQ(info.video.at(0).height, 64);
  EXPECT_EQ(info.video.at(0).frames, 17);
  EXPECT_NEAR(info.sound.at(0).seconds, 17.0 / 24, 1024.0 / 48000);
  const std::vector<Frame> frames = read_frames(folder_ / "frames");
  EXPECT_EQ(frames.size(), 17u);
  EXPECT_EQ(frames.front().width, 128);
  EXPECT_EQ(frames.front().height, 64);
  EXPECT_THAT(phase_names(read_json(folder_ / "report")),
              ElementsAre("text", "denoise", "upsample", "denoise 2", "decode sound", "decode video"));
  const auto trace = read_values(folder_ / "trace");
  EXPECT_EQ(trace.at("step_7.video").size(), 3u * 1 * 2 * 64);   // the last step at half size
  EXPECT_EQ(trace.at("step_10.video").size(), 3u * 2 * 4 * 64);  // three more at the whole
}

TEST_F(TwoStage, leaves_no_work_behind) {
  ASSERT_THAT(run(clip({"--sigmas", "1", "-o", folder_ / "clip.mp4"})), Succeeds());

  EXPECT_THAT(folder_.names(), ::testing::UnorderedElementsAre("clip.mp4", "upsampler.safetensors"));
}

TEST_F(TwoStage, codes_what_is_given_for_both_sizes_and_holds_it_in_both) {
  const fs::path picture = earlier_clip() / "frames/frame_00000.png";
  ASSERT_THAT(run(clip({"--image", picture, "--fit", "stretch", "--trace", folder_ / "trace", "--latents",
                        folder_ / "latents", "--report", folder_ / "report"})),
              Succeeds());
  auto coded = [&](const char* width, const char* height) {
    EXPECT_THAT(
        run(given_clip({"--image", picture, "--fit", "stretch", "--frames", "1", "--width", width, "--height",
                        height, "--no-audio", "--trace", folder_ / "one", "--overwrite"})),
        Succeeds());
    return read_values(folder_ / "one").at("step_7.video");
  };

  EXPECT_THAT(phase_names(read_json(folder_ / "report")), Contains("condition 2"));
  auto trace = read_values(folder_ / "trace");
  auto opening = [&](const char* step, std::size_t tokens) {  // packed: [tokens, 64]
    Values& latents = trace.at(step);
    return Values(latents.begin(), latents.begin() + static_cast<std::ptrdiff_t>(tokens * 64));
  };
  EXPECT_EQ(opening("step_7.video", 2), coded("64", "32"));
  EXPECT_EQ(opening("step_10.video", 8), coded("128", "64"));
}

TEST_F(TwoStage, keeps_a_given_sound_through_both) {
  const fs::path sound = earlier_clip() / "clip.wav";
  ASSERT_THAT(run(clip({"--audio", sound, "--wav", folder_ / "clip.wav", "--trace", folder_ / "trace"})),
              Succeeds());

  EXPECT_TRUE(same_bytes(folder_ / "clip.wav", sound));
  const auto trace = read_values(folder_ / "trace");
  EXPECT_EQ(trace.at("step_0.audio"), trace.at("step_10.audio"));
}

TEST_F(TwoStage, filters_the_upsampled_latents_as_far_as_asked) {
  auto latents = [&](const Arguments& more) {
    EXPECT_THAT(run(clip(with(more, {"--sigmas", "1,0.5", "--latents", folder_ / "latents", "--overwrite"}))),
                Succeeds());
    return read_values(folder_ / "latents").at("video_latents");
  };
  const Values plain = latents({});

  EXPECT_EQ(latents({"--adain", "0", "--tone-map", "0"}), plain);
  EXPECT_NE(latents({"--adain", "1"}), plain);
  EXPECT_NE(latents({"--tone-map", "1"}), plain);
}

TEST_F(TwoStage, doubles_the_frames_with_an_upsampler_that_does) {
  const fs::path both = write_upsampler(folder_ / "both.safetensors", {"--upsampler-kind", "both"});
  const Arguments upsampler = {"--upsampler", both, "--trace", folder_ / "trace"};

  ASSERT_THAT(run(clip(with(upsampler, {"-o", folder_ / "clip.mp4"}))), Succeeds());

  EXPECT_EQ(media::probe(folder_ / "clip.mp4").video.at(0).frames, 17);
  const auto trace = read_values(folder_ / "trace");
  EXPECT_EQ(trace.at("step_7.video").size(), 2u * 1 * 2 * 64);
  EXPECT_EQ(trace.at("step_10.video").size(), 3u * 2 * 4 * 64);
  EXPECT_THAT(run(clip({"--upsampler", both, "--frames", "25", "-o", folder_ / "other.mp4"})),
              Refuses(2, HasSubstr("--frames 25: an upsampler that doubles the frames makes 16k+1"),
                      HasSubstr("use 17 or 33")));
  EXPECT_THAT(run(clip({"--upsampler", both, "--image", earlier_clip() / "frames/frame_00000.png@-1", "-o",
                        folder_ / "other.mp4"})),
              Refuses(2, HasSubstr("frame_00000.png: with an upsampler that doubles the frames only --image"),
                      HasSubstr("spatial upsampler")));
}

TEST_F(TwoStage, sizes_are_multiples_of_64) {
  EXPECT_THAT(run(clip({"--width", "1920", "--height", "800", "-o", folder_ / "clip.mp4"})),
              Refuses(2, HasSubstr("--height 800 is no multiple of 64"), HasSubstr("use 768 or 832")));
  EXPECT_THAT(run(clip({"--width", "96", "-o", folder_ / "clip.mp4"})),
              Refuses(2, HasSubstr("--width 96 is no multiple of 64"), HasSubstr("use 64 or 128")));
}

TEST_F(TwoStage, of_a_dev_model_needs_the_distilled_adapter) {
  const Arguments dev = {"--variant", "dev", "--stg", "0", "--steps", "2"};

  EXPECT_THAT(run(clip(with(dev, {"-o", folder_ / "clip.mp4"}))),
              Refuses(2, HasSubstr("the second stage of a dev model needs the distilled adapter"),
                      HasSubstr("take a distilled model")));
  EXPECT_THAT(folder_.names(), ElementsAre("upsampler.safetensors"));
}

TEST_F(TwoStage, refuses_what_is_no_upsampler_of_this_model) {
  auto refused = [&](const fs::path& upsampler, const std::string& message, const std::string& hint) {
    EXPECT_THAT(run(clip({"--upsampler", upsampler, "-o", folder_ / "clip.mp4"})),
                Refuses(3, HasSubstr(upsampler.string() + ": " + message), HasSubstr(hint)));
  };
  refused(write_upsampler(folder_ / "other.safetensors", {"--model-version", "2.5.0"}),
          "it is for model version 2.5.0, " + demo_model().string() + " is 2.3.0", "this model's release");
  refused(
      write_upsampler(folder_ / "wide.safetensors",
                      {"--upsampler-channels", "128", "--upsampler-width", "32", "--upsampler-blocks", "1"}),
      "it upsamples latents of 128 channels, " + demo_model().string() + " has 64", "this model's release");
  refused(demo_model(), "no latent upsampler", "latent upsampler as published");
  refused(folder_ / "nowhere.safetensors", "there is no such file", "latent upsampler as published");
  refused(earlier_clip() / "clip.mp4", "is a video, not a safetensors file", "give the weights");
}

TEST(Upsampler, and_the_second_stage_need_each_other) {
  TemporaryFolder folder;

  EXPECT_THAT(run(given_clip({"--two-stage", "-o", folder / "clip.mp4"})),
              Refuses(2, HasSubstr("--two-stage needs the latent upsampler"), HasSubstr("add --upsampler")));
  EXPECT_THAT(run(given_clip({"--upsampler", "up.safetensors", "-o", folder / "clip.mp4"})),
              Refuses(2, HasSubstr("--upsampler is about two stages"), HasSubstr("add --two-stage")));
  EXPECT_THAT(run(given_clip({"--adain", "1", "-o", folder / "clip.mp4"})),
              Refuses(2, HasSubstr("--adain is about two stages"), HasSubstr("add --two-stage")));
  EXPECT_THAT(folder.names(), IsEmpty());
}

}  // namespace
}  // namespace sluice::test
