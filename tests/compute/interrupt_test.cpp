// Ctrl-C in every phase: an orderly end with exit code 130, nothing half done left behind.
#include "compute/world.h"
#include "support/synthetic_file.h"
#include "support/wide_text_encoder.h"

#include <gmock/gmock.h>

#include <csignal>

namespace sluice::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::string long_prompt() {
  std::string prompt;
  for (int i = 0; i < 600; ++i) prompt += "red circle ";
  return prompt;
}

// Clean latents of a clip large enough to be interrupted while it is decoded.
void write_latents(const fs::path& file) {
  SyntheticFile()
      .tensor("audio_latents", Dtype::F32, {1, 2, 268, 16})
      .tensor("video_latents", Dtype::F32, {1, 64, 33, 8, 8})
      .write_to(file);
  std::string content = file_content(file);
  const std::size_t header =
      8 + static_cast<unsigned char>(content[0]) + 256 * static_cast<unsigned char>(content[1]);
  std::fill(content.begin() + static_cast<std::ptrdiff_t>(header), content.end(), '\0');
  write_file(file, content);
}

struct Phase {
  const char* name;
  const char* begun;  // on stderr
  const char* ended;
  Arguments flags;
};

void PrintTo(const Phase& phase, std::ostream* out) {
  *out << phase.name;
}

class Interrupt : public ::testing::TestWithParam<Phase> {
 protected:
  Interrupt() {
    write_wide_text_encoder(demo_text_encoder(), folder_ / "slow");
    write_latents(folder_ / "latents");
    fs::create_directory(folder_ / "out");
  }

  Arguments command() const {
    Arguments flags;
    for (const std::string& flag : GetParam().flags) {
      const bool file = flag == "slow" || flag == "latents";
      flags.push_back(file ? (folder_ / flag).string() : flag == "prompt" ? long_prompt() : flag);
    }
    const Arguments outputs = {"-o", folder_ / "out/clip.mp4", "--frames-dir", folder_ / "out/frames"};
    const Arguments all = with(with(demo_clip(), flags), outputs);
    const bool denoises = std::find(flags.begin(), flags.end(), "--decode-latents") == flags.end();
    return denoises ? with(all, {"--trace", folder_ / "out/trace"}) : all;
  }

  // Beside what a run is resumed from.
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / "out")) {
      if (entry.path().extension() != ".sluice-work") names.push_back(entry.path().filename());
    }
    return names;
  }

  TemporaryFolder folder_;
};

TEST_P(Interrupt, ends_the_run_with_code_130_and_leaves_nothing_half_done) {
  Program program({.arguments = command()});

  ASSERT_TRUE(program.wait_for(GetParam().begun));
  program.send(SIGINT);
  const Outcome outcome = program.finish();

  EXPECT_THAT(outcome, Fails(130, HasSubstr("interrupted"), HasSubstr("run the same command again")));
  EXPECT_THAT(outcome.err, Not(HasSubstr(GetParam().ended)));
  EXPECT_THAT(left(), IsEmpty());
}

TEST_P(Interrupt, by_another_program_is_the_same) {
  Program program({.arguments = command()});

  ASSERT_TRUE(program.wait_for(GetParam().begun));
  program.send(SIGTERM);

  EXPECT_THAT(program.finish(), Fails(130, HasSubstr("interrupted")));
  EXPECT_THAT(left(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    During, Interrupt,
    ::testing::Values(
        Phase{
            "text", "text         1/7", "text         7/7", {"--text-encoder", "slow", "--prompt", "prompt"}},
        Phase{"denoise",
              "denoise      2/1000",
              "denoise      1000/1000",
              {"--variant", "dev", "--steps", "1000", "--stg-blocks", "1"}},
        Phase{"decode_sound",
              "decode sound 0/1",
              "decode sound 1/1",
              {"--decode-latents", "latents", "--width", "256", "--height", "256", "--frames", "257"}},
        Phase{"decode_video",
              "decode video 1/257",
              "decode video 257/257",
              {"--decode-latents", "latents", "--width", "256", "--height", "256", "--frames", "257",
               "--no-audio"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SecondInterrupt, ends_the_run_at_once) {
  TemporaryFolder folder;
  // One block attends over 33792 tokens and takes seconds: between the signals the run cannot come to its
  // end.
  Program program({.arguments = with(demo_clip(), {"--width", "1024", "--height", "1024", "--frames", "257",
                                                   "-o", folder / "clip.mp4"})});

  ASSERT_TRUE(program.wait_for("denoise      0/8"));
  program.wait_for_work();
  program.send(SIGINT);
  program.wait_until_delivered(SIGINT);
  program.send(SIGINT);
  const Outcome outcome = program.finish();

  EXPECT_EQ(outcome.code, 130);
  EXPECT_THAT(outcome.err, Not(HasSubstr("interrupted")));  // an orderly end would say so
}

TEST(InterruptedEncode, ends_with_code_130) {
  TemporaryFolder folder;
  write_wide_text_encoder(demo_text_encoder(), folder / "slow");
  Program program({.arguments = {"encode", "--text-encoder", folder / "slow", "--hidden-states", "--prompt",
                                 long_prompt(), "--threads", "1", "-o", folder / "states"}});

  ASSERT_TRUE(program.wait_for("text         1/7"));
  program.send(SIGINT);

  EXPECT_THAT(program.finish(), Fails(130, HasSubstr("interrupted")));
  EXPECT_THAT(folder.names(), ElementsAre("slow"));
}

TEST(InterruptedDecode, keeps_what_was_denoised) {
  TemporaryFolder folder;
  Program program(
      {.arguments = with(demo_clip(), {"--width", "256", "--height", "256", "--frames", "257", "--sigmas",
                                       "1", "--no-audio", "-o", folder / "clip.mp4"})});

  ASSERT_TRUE(program.wait_for("decode video 1/257"));
  program.send(SIGINT);
  const Outcome outcome = program.finish();

  EXPECT_THAT(outcome, Fails(130, HasSubstr("interrupted"), HasSubstr("--resume")));
  EXPECT_THAT(folder.names(), ElementsAre("clip.mp4.sluice-work"));
}

}  // namespace
}  // namespace sluice::test
