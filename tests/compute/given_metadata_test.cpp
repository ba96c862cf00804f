// The mp4 tells what it was given; a request from it asks for that again and makes the same file.
#include "compute/given_world.h"
#include "media/probe.h"

#include <gmock/gmock.h>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class FromVideo : public ::testing::Test {
 protected:
  Arguments again(const Arguments& more) const {
    return with({"generate", "--from", folder_ / "old.mp4", "--model", demo_model(), "--text-encoder",
                 demo_text_encoder(), "--threads", "1", "-o", folder_ / "new.mp4"},
                more);
  }

  TemporaryFolder folder_;
  fs::path picture_ = earlier_clip() / "frames/frame_00000.png";
};

TEST_F(FromVideo, with_a_picture_asks_for_it_and_makes_the_same_file) {
  ASSERT_THAT(
      run(short_clip({"--image", picture_.string() + "@0:0.75", "--seed", "3", "-o", folder_ / "old.mp4"})),
      Succeeds());

  EXPECT_THAT(run(again({})),
              Refuses(2, HasSubstr("was made with '--image frame_00000.png@0:0.75', which has to be"),
                      HasSubstr("add --image frame_00000.png@0:0.75")));
  ASSERT_THAT(run(again({"--image", picture_.string() + "@0:0.75"})), Succeeds());

  EXPECT_TRUE(same_bytes(folder_ / "new.mp4", folder_ / "old.mp4"));
}

TEST_F(FromVideo, with_everything_asks_for_each_and_makes_the_same_file) {
  const fs::path upsampler = write_upsampler(folder_ / "upsampler.safetensors");
  const fs::path clip = earlier_clip() / "clip.mp4", sound = earlier_clip() / "clip.wav";
  const Arguments stages = {"--two-stage", "--upsampler", upsampler, "--adain", "0.5", "--tone-map", "0.25"};
  ASSERT_THAT(
      run(short_clip(with(stages, {"--video", clip, "--frames-from", "-9", "--image",
                                   picture_.string() + "@-1", "--audio", sound, "--fit", "pad", "--image-crf",
                                   "20", "--sampler", "euler_ancestral", "-o", folder_ / "old.mp4"}))),
      Succeeds());

  Arguments given = {"--video", clip};
  EXPECT_THAT(run(again({})), Refuses(2, HasSubstr("'--image frame_00000.png@16:1'")));
  EXPECT_THAT(run(again({"--image", picture_.string() + "@16"})),
              Refuses(2, HasSubstr("'--video clip.mp4@0:1'")));
  given = with(given, {"--image", picture_.string() + "@16"});
  EXPECT_THAT(run(again(given)), Refuses(2, HasSubstr("'--audio clip.wav'")));
  given = with(given, {"--audio", sound});
  EXPECT_THAT(run(again(given)), Refuses(2, HasSubstr("'--upsampler upsampler.safetensors'")));
  // That there are two stages, and their filters, are no files.
  ASSERT_THAT(run(again(with(given, {"--upsampler", upsampler}))), Succeeds());

  EXPECT_TRUE(same_bytes(folder_ / "new.mp4", folder_ / "old.mp4"));
}

TEST_F(FromVideo, tells_names_places_and_checksums_but_no_paths) {
  ASSERT_THAT(run(short_clip({"--image", picture_.string() + "@-1:0.5", "--audio",
                              earlier_clip() / "clip.wav", "-o", folder_ / "old.mp4"})),
              Succeeds());

  const std::string tag = media::read_metadata(folder_ / "old.mp4").at("sluice");
  const json request = json::parse(tag).at("request");
  const json& frames = request.at("frames_given").at(0);
  EXPECT_EQ(frames.at("kind"), "image");
  EXPECT_EQ(frames.at("file"), "frame_00000.png");
  EXPECT_EQ(frames.at("frame"), 16);
  EXPECT_EQ(frames.at("strength"), 0.5);
  EXPECT_FALSE(frames.at("checksum").get<std::string>().empty());
  EXPECT_EQ(request.at("audio").at("file"), "clip.wav");
  EXPECT_THAT(tag, Not(HasSubstr(earlier_clip().string())));
}

TEST_F(FromVideo, is_the_same_in_the_report_and_the_plan) {
  const Arguments given = {"--image", picture_.string() + "@-1:0.5", "--audio", earlier_clip() / "clip.wav"};
  ASSERT_THAT(run(short_clip(with(given, {"-o", folder_ / "old.mp4", "--report", folder_ / "report"}))),
              Succeeds());
  Arguments plan = short_clip(with(given, {"--json", "--no-timing"}));
  plan.front() = "plan";
  const Outcome planned = run(plan);

  ASSERT_THAT(planned, Succeeds());
  const json in_file = json::parse(media::read_metadata(folder_ / "old.mp4").at("sluice")).at("request");
  const json report = read_json(folder_ / "report"), in_plan = json::parse(planned.out);
  for (const char* key : {"frames_given", "audio", "fit", "image_crf"}) {
    EXPECT_EQ(report.at("request").at(key), in_file.at(key)) << key;
    EXPECT_EQ(in_plan.at("request").at(key), in_file.at(key)) << key;
  }
  EXPECT_EQ(in_plan.at("given"), report.at("given"));
}

}  // namespace
}  // namespace sluice::test
