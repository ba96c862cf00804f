// What a run says: results on stdout, progress and warnings on stderr.
#include "compute/world.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Output, is_one_json_object_when_asked_the_same_as_the_report) {
  TemporaryFolder folder;

  const Outcome outcome =
      run(with(demo_clip(), {"--json", "-q", "-o", folder / "clip.mp4", "--report", folder / "report"}));

  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.err, IsEmpty());
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report, json::parse(file_content(folder / "report")));
  EXPECT_EQ(report.at("request").at("seed"), 42);
  EXPECT_EQ(report.at("versions").at("sluice"), "0.1.0");
  std::vector<std::string> phases;
  for (const json& phase : report.at("phases")) phases.push_back(phase.at("name"));
  EXPECT_THAT(phases, ElementsAre("text", "denoise", "decode sound", "decode video"));
}

TEST(Output, names_what_was_written_and_progress_stays_on_stderr) {
  TemporaryFolder folder;

  const Outcome outcome = run(with(demo_clip(), {"-o", folder / "clip.mp4", "--wav", folder / "clip.wav"}));

  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out,
              AllOf(StartsWith((folder / "clip.mp4").string() + "\n" + (folder / "clip.wav").string() + "\n"),
                    HasSubstr("seed 42")));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("text "), HasSubstr("denoise      8/8 steps"),
                                 HasSubstr("decode video 17/17 frames")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("\r")));  // no terminal, no bar
}

TEST(Output, tells_what_auto_chose_and_why_when_asked) {
  TemporaryFolder folder;
  const Arguments command = with(demo_clip(), {"-o", folder / "clip.mp4", "--overwrite"});

  EXPECT_THAT(run(with(command, {"-v"})).err, AllOf(HasSubstr("sluice: variant: distilled (asked for)\n"),
                                                    HasSubstr("sluice: compute-dtype: ")));
  EXPECT_THAT(run(command).err, Not(HasSubstr("compute-dtype")));
}

TEST(Output, warns_of_a_variant_that_nothing_tells) {
  TemporaryFolder folder;
  const Outcome outcome = run(with(demo_clip(), {"--variant", "auto", "-o", folder / "clip.mp4"}));

  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.err,
              HasSubstr("sluice: warning: neither the file's name nor a scheduler config tells"));
}

TEST(Encode, gives_the_context_that_a_run_denoises_with) {
  TemporaryFolder folder;
  const std::string prompt = "a blue circle moves left on a grey background, low tone";
  ASSERT_THAT(
      run(with(demo_clip(), {"--prompt", prompt, "--compute-dtype", "f32", "--trace", folder / "trace"})),
      Succeeds());

  const Outcome outcome =
      run({"encode", "--model", demo_model(), "--text-encoder", demo_text_encoder(), "--prompt", prompt,
           "--compute-dtype", "f32", "--threads", "1", "--json", "-o", folder / "context"});

  ASSERT_THAT(outcome, Succeeds());
  EXPECT_EQ(json::parse(outcome.out).at("tensors").at("context.video"), json({1, 1024, 128}));
  const auto trace = read_values(folder / "trace"), context = read_values(folder / "context");
  EXPECT_EQ(trace.at("context.video"), context.at("context.video"));
  EXPECT_EQ(trace.at("context.audio"), context.at("context.audio"));
}

}  // namespace
}  // namespace sluice::test
