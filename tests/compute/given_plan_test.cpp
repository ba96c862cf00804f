// The plan of what is given: its phases, what is missing, from headers alone.
#include "compute/adapters.h"
#include "compute/given_world.h"

#include <sluice/units.h>

#include <gmock/gmock.h>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PlanOf : public ::testing::Test {
 protected:
  json plan(const Arguments& more) {
    Arguments command = given_clip(with(more, {"--json", "--no-timing"}));
    command.front() = "plan";
    const Outcome outcome = run(command);
    EXPECT_THAT(outcome, Succeeds());
    return json::parse(outcome.out);
  }
  static json phase(const json& plan, const std::string& name) {
    for (const json& row : plan.at("phases"))
      if (row.at("name") == name) return row;
    ADD_FAILURE() << "there is no phase " << name;
    return {};
  }

  TemporaryFolder folder_;
  fs::path picture_ = earlier_clip() / "frames/frame_00000.png";
  fs::path clip_ = earlier_clip() / "clip.mp4";
  fs::path sound_ = earlier_clip() / "clip.wav";
};

TEST_F(PlanOf, each_kind_of_what_is_given_has_its_phases) {
  const Arguments stages = {"--two-stage", "--upsampler", write_upsampler(folder_ / "up.safetensors")};
  const auto phases = [&](const Arguments& more) { return phase_names(plan(more)); };

  EXPECT_THAT(phases({}), ElementsAre("text", "denoise", "decode sound", "decode video"));
  EXPECT_THAT(phases({"--image", picture_}),
              ElementsAre("text", "condition", "denoise", "decode sound", "decode video"));
  EXPECT_THAT(phases({"--video", clip_, "--frames-from", "-9"}),
              ElementsAre("text", "condition", "denoise", "decode sound", "decode video"));
  EXPECT_THAT(phases({"--video", clip_, "--retake", "0.1:0.2"}),
              ElementsAre("text", "condition", "denoise", "decode sound", "decode video"));
  EXPECT_THAT(phases({"--audio", sound_}), ElementsAre("text", "condition", "denoise", "decode video"));
  EXPECT_THAT(phases(stages),
              ElementsAre("text", "denoise", "upsample", "denoise 2", "decode sound", "decode video"));
  EXPECT_THAT(phases(with(stages, {"--image", picture_})),
              ElementsAre("text", "condition", "denoise", "upsample", "condition 2", "denoise 2",
                          "decode sound", "decode video"));
  // The sound is coded once.
  EXPECT_THAT(phases(with(stages, {"--audio", sound_})),
              ElementsAre("text", "condition", "denoise", "upsample", "denoise 2", "decode video"));
  EXPECT_THAT(phases({"--audio-only"}), ElementsAre("text", "denoise", "decode sound"));
  EXPECT_THAT(phases({"--video-only"}), ElementsAre("text", "denoise", "decode video"));
}

TEST_F(PlanOf, a_dev_model_in_two_stages_names_the_adapter_that_is_missing) {
  const Arguments stages = {"--two-stage",
                            "--upsampler",
                            write_upsampler(folder_ / "up.safetensors"),
                            "--variant",
                            "dev",
                            "--stg",
                            "0"};
  write_adapter(folder_ / "distilled.safetensors", small_adapter());

  EXPECT_THAT(
      plan(stages).at("missing"),
      ElementsAre(HasSubstr("the second stage of a dev model needs the distilled adapter: --stage-2-lora")));

  const json complete = plan(with(stages, {"--stage-2-lora", folder_ / "distilled.safetensors"}));
  EXPECT_THAT(complete.at("missing"), IsEmpty());
  EXPECT_THAT(complete.at("stages").at(0).at("adapters"), IsEmpty());
  EXPECT_THAT(complete.at("stages").at(1).at("adapters"), ElementsAre("distilled.safetensors"));
  EXPECT_EQ(complete.at("stages").at(0).at("width"), 32);
  EXPECT_EQ(complete.at("stages").at(1).at("width"), 64);
}

TEST_F(PlanOf, tokens_beside_the_clip_count) {
  const json plain = plan({}), first = plan({"--image", picture_}),
             last = plan({"--image", picture_.string() + "@-1"});

  EXPECT_EQ(plain.at("stages").at(0).at("tokens_given"), 0);
  EXPECT_EQ(first.at("stages").at(0).at("tokens_given"), 0);  // in the place of the clip's own
  EXPECT_EQ(last.at("stages").at(0).at("tokens_given"), 4);
  EXPECT_GT(phase(last, "denoise").at("memory"), phase(plain, "denoise").at("memory"));
}

TEST_F(PlanOf, several_clips_take_memory_and_no_more_reading) {
  const json one = plan({"--stage-from", "disk"}), four = plan({"--stage-from", "disk", "--count", "4"});

  EXPECT_EQ(phase(four, "denoise").at("bytes_read"), phase(one, "denoise").at("bytes_read"));
  EXPECT_GT(phase(four, "denoise").at("memory"), phase(one, "denoise").at("memory"));
}

TEST_F(PlanOf, an_adapter_is_read_beside_the_weights) {
  write_adapter(folder_ / "style.safetensors", small_adapter());
  const json plain = plan({}), adapted = plan({"--lora", folder_ / "style.safetensors"});

  const json adapters = phase(adapted, "denoise").at("adapters");
  EXPECT_GT(adapters.at("bytes"), 0);
  EXPECT_EQ(phase(adapted, "denoise").at("bytes_read").get<Bytes>(),
            phase(plain, "denoise").at("bytes_read").get<Bytes>() + adapters.at("bytes").get<Bytes>());
}

// A picture whose header is all there is: a plan needs no more.
TEST_F(PlanOf, reads_no_more_of_what_is_given_than_its_header) {
  std::string damaged = file_content(picture_);
  const std::size_t pixels = damaged.find("IDAT") + 4;
  std::fill(damaged.begin() + static_cast<std::ptrdiff_t>(pixels), damaged.end() - 16, '\0');
  write_file(folder_ / "damaged.png", damaged);

  const json given = plan({"--image", folder_ / "damaged.png"}).at("given");

  EXPECT_EQ(given.at(0).at("size"), json({64, 64}));
  EXPECT_THAT(run(given_clip({"--image", folder_ / "damaged.png", "--latents", folder_ / "latents"})),
              Fails(3, HasSubstr("damaged.png")));
}

// Enough for the clip of a plan is enough for the clip.
TEST_F(PlanOf, what_is_planned_holds_for_what_is_given) {
  const Arguments stages = {"--two-stage", "--upsampler", write_upsampler(folder_ / "up.safetensors")};
  for (const Arguments& given :
       {Arguments{"--image", picture_, "--image", picture_.string() + "@-1"},
        Arguments{"--video", clip_, "--audio", sound_}, with(stages, {"--image", picture_})}) {
    ASSERT_THAT(run(short_clip(with(given, {"--latents", folder_ / "latents", "--report", folder_ / "report",
                                            "--overwrite"}))),
                Succeeds());
    const json report = read_json(folder_ / "report");
    for (const json& row : report.at("phases")) {
      if (kSanitized) continue;
      EXPECT_LT(row.at("peak_anonymous").get<double>(),
                1.1 * row.at("planned").at("peak_anonymous").get<double>())
          << row.at("name");
    }
  }
}

}  // namespace
}  // namespace sluice::test
