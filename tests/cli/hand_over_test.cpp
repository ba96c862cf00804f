// Two programs that look like one: `sluice` alone, without the one that computes.
#include "support/program.h"
#include "support/synthetic_file.h"

#include <gmock/gmock.h>

namespace sluice::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class AloneInAFolder : public ::testing::Test {
 protected:
  AloneInAFolder() { std::filesystem::copy(SLUICE_BINARY_DIR "/sluice", program_); }

  Outcome run_alone(const Arguments& arguments) const {
    return run(Start{.arguments = arguments, .program = program_});
  }

  TemporaryFolder folder_;
  std::filesystem::path program_ = folder_ / "sluice";
};

TEST_F(AloneInAFolder, it_names_all_commands) {
  const Outcome help = run_alone({"--help"});

  EXPECT_THAT(help, Succeeds());
  EXPECT_THAT(help.out,
              AllOf(HasSubstr("generate"), HasSubstr("encode"), HasSubstr("plan"), HasSubstr("inspect"),
                    HasSubstr("load"), HasSubstr("verify"), HasSubstr("bench"), HasSubstr("exit codes:")));
  EXPECT_THAT(run_alone({"--version"}), Succeeds());
  EXPECT_THAT(run_alone({"genrate"}),
              Refuses(2, HasSubstr("'genrate' is unknown"), HasSubstr("did you mean generate?")));
}

TEST_F(AloneInAFolder, it_looks_at_files) {
  const WrittenFile file = SyntheticFile().tensor("a", Dtype::U8, {1}).write();

  EXPECT_THAT(run_alone({"inspect", file.path()}), Succeeds());
}

TEST_F(AloneInAFolder, it_says_what_is_missing_for_the_rest) {
  TemporaryFolder videos;
  write_file(videos / "clip.mp4", std::string("\0\0\0\x18", 4) + "ftypisom");

  for (const Arguments& arguments : {Arguments{"generate", "--help"}, Arguments{"plan", "--model", "m"},
                                     Arguments{"inspect", videos / "clip.mp4"}}) {
    EXPECT_THAT(run_alone(arguments),
                Refuses(5, AllOf(HasSubstr("sluice-compute: cannot start: no such file")),
                        HasSubstr("install all of sluice")));
  }
}

}  // namespace
}  // namespace sluice::test
