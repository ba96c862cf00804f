// The program killed on the way: the same command with --resume makes what an undisturbed run makes.
#include "base/cpu_path.h"
#include "compute/world.h"
#include "support/cpu_variable.h"

#include <gmock/gmock.h>

#include <csignal>
#include <random>

namespace sluice::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Arguments clip(const fs::path& folder) {
  return with(demo_clip(), {"-o", folder / "clip.mp4", "--wav", folder / "clip.wav", "--frames-dir",
                            folder / "frames", "--latents", folder / "latents", "--trace", folder / "trace"});
}

Arguments resumed(Arguments command) {
  command.push_back("--resume");
  return command;
}

// All outputs of clip(), and nothing beside them.
testing::AssertionResult same_clips(const fs::path& one, const fs::path& other) {
  for (const char* file : {"clip.mp4", "clip.wav", "latents", "trace"}) {
    if (auto same = same_bytes(one / file, other / file); !same) return same;
  }
  if (auto same = same_files(one / "frames", other / "frames"); !same) return same;
  const auto count = std::distance(fs::directory_iterator(one), {});
  return count == 5 ? testing::AssertionSuccess()
                    : testing::AssertionFailure() << one << " holds " << count << " entries, not 5";
}

class Killed : public ::testing::Test {
 protected:
  Killed() {
    fs::create_directory(folder_ / "whole");
    fs::create_directory(folder_ / "killed");
    EXPECT_THAT(run(clip(folder_ / "whole")), Succeeds());
  }

  // Ends without a word as soon as it says `moment`.
  void kill_at(const Arguments& command, const std::string& moment) {
    Program program({.arguments = command});
    ASSERT_TRUE(program.wait_for(moment)) << moment;
    program.send(SIGKILL);
    const Outcome outcome = program.finish();
    ASSERT_EQ(outcome.signal, SIGKILL);
  }

  TemporaryFolder folder_;
};

TEST_F(Killed, at_three_steps_in_a_row_goes_on_to_the_same_files) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Arguments command = clip(folder_ / "killed");
  int step = 0;
  for (int kill = 0; kill < 3; ++kill) {
    step += 1 + static_cast<int>(random() % 2);
    kill_at(kill == 0 ? command : resumed(command), "denoise      " + std::to_string(step) + "/8");
  }

  ASSERT_THAT(run(resumed(command)), Succeeds());

  EXPECT_TRUE(same_clips(folder_ / "killed", folder_ / "whole"));
}

// Of a clip whose frames take longer to decode than a signal takes to come.
TEST_F(Killed, in_the_decoder_goes_on_without_denoising) {
  auto long_clip = [&](const fs::path& folder) {
    return with(clip(folder_.path() / folder),
                {"--width", "256", "--height", "256", "--frames", "65", "--sigmas", "1", "--overwrite"});
  };
  ASSERT_THAT(run(long_clip("whole")), Succeeds());
  Arguments command = long_clip("killed");
  command.pop_back();  // --overwrite
  kill_at(command, "decode video 1/65");

  const Outcome outcome = run(resumed(command));

  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.err, AllOf(Not(HasSubstr("denoise ")), Not(HasSubstr("decode sound "))));
  EXPECT_TRUE(same_clips(folder_ / "killed", folder_ / "whole"));
}

TEST_F(Killed, resumes_after_the_step_that_was_finished) {
  const Arguments command = clip(folder_ / "killed");
  kill_at(command, "denoise      4/8");

  const Outcome outcome = run(resumed(command));

  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.err,
              AllOf(Not(HasSubstr("text ")), Not(HasSubstr("denoise      3/8")), HasSubstr("8/8")));
  EXPECT_TRUE(same_clips(folder_ / "killed", folder_ / "whole"));
}

TEST_F(Killed, goes_on_with_other_ways_to_read_and_to_report) {
  const Arguments command = clip(folder_ / "killed");
  kill_at(command, "denoise      2/8");

  ASSERT_THAT(run(resumed(with(
                  command, {"--read-backend", "pread", "--cache", "drop", "--report", folder_ / "report"}))),
              Succeeds());

  EXPECT_TRUE(same_clips(folder_ / "killed", folder_ / "whole"));
}

TEST_F(Killed, of_another_request_is_refused_naming_the_difference) {
  const Arguments command = clip(folder_ / "killed");
  kill_at(command, "denoise      2/8");

  EXPECT_THAT(run(resumed(with(command, {"--seed", "43"}))),
              Refuses(2, HasSubstr("seed 42 there, 43 here"), HasSubstr("--resume")));
  EXPECT_THAT(run(resumed(with(command, {"--width", "96"}))),
              Refuses(2, HasSubstr("width 64 there, 96 here")));
}

TEST_F(Killed, with_other_instructions_is_refused_naming_both) {
  const Arguments command = clip(folder_ / "killed");
  kill_at(command, "denoise      2/8");
  const std::string here(name(cpu_path()));
  for (const CpuPath path : cpu_paths()) {
    if (path == cpu_path()) continue;
    const CpuVariable variable(name(path));

    EXPECT_THAT(run(resumed(command)), Refuses(2, HasSubstr(here + "\" there"), HasSubstr("--resume")));
  }
}

TEST(FullDisk, later_is_no_loss_the_run_is_finished_elsewhere) {
  TemporaryFolder folder;
  fs::create_directory(folder / "full");
  const Arguments command = with(demo_clip(), {"-o", folder / "full/clip.mp4"});
  const fs::path work = folder / "full/clip.mp4.sluice-work";

  const Outcome outcome = run({.arguments = command, .file_size = 10'000});

  EXPECT_THAT(outcome, Fails(5, HasSubstr("clip.mp4: "), HasSubstr("--resume")));
  EXPECT_THAT(outcome.err, HasSubstr("--resume --work-dir " + work.string()));
  const Outcome finished = run(resumed(with(command, {"-o", folder / "clip.mp4", "--work-dir", work})));
  ASSERT_THAT(finished, Succeeds());
  EXPECT_THAT(finished.err, Not(HasSubstr("denoise ")));
  ASSERT_THAT(run(with(command, {"-o", folder / "whole.mp4"})), Succeeds());
  EXPECT_TRUE(same_bytes(folder / "clip.mp4", folder / "whole.mp4"));
  EXPECT_TRUE(fs::is_empty(folder / "full"));
}

}  // namespace
}  // namespace sluice::test
