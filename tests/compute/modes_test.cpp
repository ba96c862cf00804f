// One stream alone, the samplers, guidance: what they write, and that they write it again.
#include "compute/given_world.h"
#include "media/probe.h"

#include <gmock/gmock.h>

namespace sluice::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Mode {
  const char* name;
  Arguments flags;
};

void PrintTo(const Mode& mode, std::ostream* out) {
  *out << mode.name;
}

Arguments guided(const Arguments& more) {
  return with({"--variant", "dev", "--steps", "3", "--stg", "0", "--modality-guidance", "1"}, more);
}

class ModeOf : public ::testing::TestWithParam<Mode> {
 protected:
  fs::path latents(const std::string& name, const Arguments& more) {
    const Outcome outcome =
        run(given_clip(with(with(more, GetParam().flags), {"--latents", folder_ / name})));
    EXPECT_THAT(outcome, Succeeds());
    return folder_ / name;
  }

  TemporaryFolder folder_;
};

TEST_P(ModeOf, gives_the_same_latents_again_however_weights_are_read_and_others_than_the_default) {
  const fs::path once = latents("once", {});

  EXPECT_TRUE(same_bytes(latents("again", {"--stage-from", "disk", "--read-backend", "pread"}), once));
  ASSERT_THAT(run(given_clip({"--latents", folder_ / "default"})), Succeeds());
  const auto own = read_values(once), usual = read_values(folder_ / "default");
  for (const auto& [name, values] : own) EXPECT_NE(values, usual.at(name)) << name;
}

INSTANTIATE_TEST_SUITE_P(
    Modes, ModeOf,
    ::testing::Values(Mode{"audio_only", {"--audio-only"}}, Mode{"video_only", {"--video-only"}},
                      Mode{"euler_ancestral", {"--sampler", "euler_ancestral"}},
                      Mode{"res_2s", {"--sampler", "res_2s"}}, Mode{"sigmas", {"--sigmas", "1,0.7,0.3"}},
                      Mode{"negative_prompt",
                           guided({"--guidance", "3", "--negative-prompt", "a blue square"})},
                      Mode{"modality_guidance", guided({"--modality-guidance", "2", "--rescale", "0.5"})}),
    [](const auto& info) { return std::string(info.param.name); });

class Modes : public ::testing::Test {
 protected:
  std::map<std::string, Values> latents(const Arguments& more) {
    EXPECT_THAT(run(given_clip(with(more, {"--latents", folder_ / "latents", "--overwrite"}))), Succeeds());
    return read_values(folder_ / "latents");
  }

  TemporaryFolder folder_;
};

TEST_F(Modes, guidance_of_picture_and_sound_are_apart) {
  const auto both = latents(guided({"--guidance", "3", "--audio-guidance", "1"}));
  const auto other_sound = latents(guided({"--guidance", "3", "--audio-guidance", "7"}));
  const auto off = latents(guided({"--guidance", "1", "--audio-guidance", "1"}));

  EXPECT_NE(both.at("audio_latents"), other_sound.at("audio_latents"));
  EXPECT_NE(both.at("video_latents"), off.at("video_latents"));
  // Each goes on from where the last step left both, so that in the end nothing is the same.
  EXPECT_NE(both.at("video_latents"), other_sound.at("video_latents"));
}

TEST_F(Modes, another_negative_prompt_gives_another_clip) {
  const Arguments scale = {"--guidance", "3"};

  EXPECT_NE(latents(guided(with(scale, {"--negative-prompt", "a blue square"}))),
            latents(guided(with(scale, {"--negative-prompt", "a green circle"}))));
}

TEST_F(Modes, audio_only_makes_sound_without_the_pictures_half_of_the_model) {
  ASSERT_THAT(run(given_clip({"--audio-only", "--wav", folder_ / "clip.wav", "--latents", folder_ / "latents",
                              "--report", folder_ / "report"})),
              Succeeds());

  EXPECT_EQ(read_samples(folder_ / "clip.wav").sample_rate, 48000);
  EXPECT_EQ(read_values(folder_ / "latents").count("video_latents"), 0u);
  EXPECT_THAT(phase_names(read_json(folder_ / "report")), ElementsAre("text", "denoise", "decode sound"));
}

TEST_F(Modes, video_only_makes_one_stream) {
  ASSERT_THAT(run(given_clip({"--video-only", "-o", folder_ / "clip.mp4", "--latents", folder_ / "latents",
                              "--report", folder_ / "report"})),
              Succeeds());

  EXPECT_THAT(media::probe(folder_ / "clip.mp4").sound, IsEmpty());
  EXPECT_EQ(media::probe(folder_ / "clip.mp4").video.at(0).frames, 17);
  EXPECT_EQ(read_values(folder_ / "latents").count("audio_latents"), 0u);
  EXPECT_THAT(phase_names(read_json(folder_ / "report")), ElementsAre("text", "denoise", "decode video"));
}

TEST_F(Modes, each_alone_reads_less_of_the_model) {
  auto denoise_reads = [&](const Arguments& more) {
    const Outcome outcome = run(given_clip(with(
        more, {"--json", "-q", "--latents", folder_ / "latents", "--overwrite", "--read-backend", "pread"})));
    EXPECT_THAT(outcome, Succeeds());
    return nlohmann::json::parse(outcome.out).at("phases").at(1).at("bytes_read").get<Bytes>();
  };
  const Bytes both = denoise_reads({}), video = denoise_reads({"--video-only"}),
              audio = denoise_reads({"--audio-only"});

  EXPECT_LT(video, both);
  EXPECT_LT(audio, both);
  EXPECT_LT(video + audio, both);  // what lets them see each other belongs to neither
}

}  // namespace
}  // namespace sluice::test
