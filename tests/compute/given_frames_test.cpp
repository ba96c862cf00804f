// Pictures and clips that the demo model is given: where they are in the result, and how near.
#include "compute/frames.h"
#include "compute/given_world.h"

#include <gmock/gmock.h>

namespace sluice::test {
namespace {

// Latents of the demo's clip: three frames of 2 x 2 for the picture, 18 of 16 numbers for the sound.
constexpr LatentShape kVideo{.channels = 64, .frames = 3, .inner = 4};
constexpr LatentShape kSound{.channels = 2, .frames = 18, .inner = 16};

class GivenFrames : public ::testing::Test {
 protected:
  // Runs the demo's clip with `more`, without sound, and leaves <name>/ with its frames and <name>.latents.
  void clip(const std::string& name, const Arguments& more) {
    const Outcome outcome = run(given_clip(with(
        more, {"--no-audio", "--frames-dir", folder_ / name, "--latents", folder_ / (name + ".latents")})));
    ASSERT_THAT(outcome, Succeeds());
  }
  std::vector<Frame> frames(const std::string& name) const { return read_frames(folder_ / name); }
  Values latents(const std::string& name) const {
    return read_values(folder_ / (name + ".latents")).at("video_latents");
  }
  static fs::path earlier(int frame) {
    char name[32];
    std::snprintf(name, sizeof name, "frame_%05d.png", frame);
    return earlier_clip() / "frames" / name;
  }

  TemporaryFolder folder_;
};

TEST_F(GivenFrames, the_first_one_is_kept_as_well_as_the_autoencoder_can) {
  const Frame picture = read_frame(earlier(0));
  clip("given", {"--image", earlier(0)});
  clip("round_trip", {"--image", earlier(0), "--frames", "1"});  // nothing but the picture: coded, decoded
  clip("without", {});

  const double given = psnr(frames("given").front(), picture);

  EXPECT_GE(given, psnr(frames("round_trip").front(), picture) - 1);
  EXPECT_GE(given, psnr(frames("without").front(), picture) + 4);
  EXPECT_EQ(frame_of(latents("given"), kVideo, 0), latents("round_trip"));
  EXPECT_NE(frame_of(latents("given"), kVideo, 0), frame_of(latents("without"), kVideo, 0));
}

TEST_F(GivenFrames, come_nearer_with_more_strength_and_are_not_there_without) {
  const Frame picture = read_frame(earlier(0));
  clip("without", {});
  clip("none", {"--image", earlier(0).string() + "@0:0"});
  clip("half", {"--image", earlier(0).string() + "@0:0.5"});
  clip("full", {"--image", earlier(0).string() + "@0:1"});

  EXPECT_TRUE(same_bytes(folder_ / "none.latents", folder_ / "without.latents"));
  EXPECT_TRUE(same_files(folder_ / "none", folder_ / "without"));
  const double without = psnr(frames("without").front(), picture);
  const double half = psnr(frames("half").front(), picture);
  EXPECT_GT(half, without + 1);
  EXPECT_GT(psnr(frames("full").front(), picture), half + 1);
}

// The demo model never saw frames beside the clip's own: they work where they are of its world.
TEST_F(GivenFrames, the_last_one_moves_the_last_frame_towards_it) {
  const Frame picture = read_frame(earlier(16));
  const Arguments other = {"--prompt", kOtherPrompt, "--seed", "9"};
  clip("without", other);
  clip("given", with(other, {"--image", earlier(16).string() + "@-1"}));
  clip("counted", with(other, {"--image", earlier(16).string() + "@16"}));

  EXPECT_GE(psnr(frames("given").back(), picture), psnr(frames("without").back(), picture) + 3);
  EXPECT_TRUE(same_bytes(folder_ / "given.latents", folder_ / "counted.latents"));
}

TEST_F(GivenFrames, first_and_last_hold_together) {
  const Arguments other = {"--prompt", kOtherPrompt, "--seed", "9"};
  clip("first", with(other, {"--image", earlier(0)}));
  clip("both", with(other, {"--image", earlier(0), "--image", earlier(16).string() + "@-1"}));

  EXPECT_EQ(frame_of(latents("both"), kVideo, 0), frame_of(latents("first"), kVideo, 0));
  EXPECT_GT(psnr(frames("both").back(), read_frame(earlier(16))),
            psnr(frames("first").back(), read_frame(earlier(16))));
}

TEST_F(GivenFrames, of_a_clips_end_are_the_next_ones_opening) {
  std::vector<Frame> tail;
  for (int i = 8; i < 17; ++i) tail.push_back(read_frame(earlier(i)));
  const Arguments tail_of = {"--video", earlier_clip() / "clip.mp4", "--frames-from", "-9"};
  const Arguments other = with(tail_of, {"--prompt", kOtherPrompt, "--seed", "9"});
  clip("next", other);
  clip("round_trip", with(other, {"--frames", "9"}));

  std::vector<Frame> opening = frames("next");
  opening.resize(9);

  EXPECT_GE(psnr(opening, tail), psnr(frames("round_trip"), tail) - 1);
  const Values coded = latents("round_trip");
  for (std::size_t frame : {0u, 1u}) {
    EXPECT_EQ(frame_of(latents("next"), kVideo, frame),
              frame_of(coded, {.channels = 64, .frames = 2, .inner = 4}, frame));
  }
  EXPECT_NE(frame_of(latents("next"), kVideo, 2),
            frame_of(coded, {.channels = 64, .frames = 2, .inner = 4}, 1));
}

// Of how many frames of latents both files have the same numbers, which ones differ.
std::vector<std::size_t> different(const Values& one, const Values& other, const LatentShape& shape) {
  std::vector<std::size_t> frames;
  for (std::size_t i = 0; i < shape.frames; ++i)
    if (frame_of(one, shape, i) != frame_of(other, shape, i)) frames.push_back(i);
  return frames;
}

TEST(Retake, changes_the_seconds_named_and_no_bit_of_the_others) {
  TemporaryFolder folder;
  const fs::path video = earlier_clip() / "clip.mp4";
  // All of both streams is given: what is in the file, coded.
  ASSERT_THAT(run(given_clip({"--video", video, "--audio", video, "--latents", folder / "coded"})),
              Succeeds());
  for (const char* seed : {"1", "2"}) {
    ASSERT_THAT(run(given_clip(
                    {"--video", video, "--retake", "0.2:0.35", "--seed", seed, "--latents", folder / seed})),
                Succeeds());
  }

  auto coded = read_values(folder / "coded"), one = read_values(folder / "1"),
       two = read_values(folder / "2");

  // 0.2 to 0.35 s of 24 frames a second are frames 4 to 8, and latents 5 to 8 of 25 a second.
  for (const auto& [name, shape, anew] :
       {std::tuple("video_latents", kVideo, std::vector<std::size_t>{1}),
        std::tuple("audio_latents", kSound, std::vector<std::size_t>{5, 6, 7, 8})}) {
    EXPECT_EQ(different(one.at(name), coded.at(name), shape), anew) << name;
    EXPECT_EQ(different(two.at(name), coded.at(name), shape), anew) << name;
    EXPECT_EQ(different(one.at(name), two.at(name), shape), anew) << name;
  }
}

TEST(Retake, makes_a_whole_mp4_as_long_as_the_video) {
  TemporaryFolder folder;

  const Outcome outcome = run(given_clip({"--video", earlier_clip() / "clip.mp4", "--retake", "0.3:9", "-o",
                                          folder / "clip.mp4", "--frames-dir", folder / "frames"}));

  ASSERT_THAT(outcome, Succeeds());
  EXPECT_EQ(read_frames(folder / "frames").size(), 17u);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("--retake 0.3:9: the clip ends at 0.708 s"));
}

}  // namespace
}  // namespace sluice::test
