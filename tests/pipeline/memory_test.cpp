// What memory is there, and that a request which needs more is refused before work.
#include "pipeline/needs.h"
#include "pipeline/system_memory.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

namespace sluice::pipeline {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ControlGroup : public testing::Test {
 protected:
  void write(const char* name, const std::string& text) { std::ofstream(folder_.path() / name) << text; }

  test::TemporaryFolder folder_;
};

TEST_F(ControlGroup, leaves_its_limit_less_what_is_held_beside_page_cache) {
  write("memory.max", "1000\n");
  write("memory.current", "700\n");
  write("memory.stat", "anon 300\nfile 400\nkernel 0\n");

  EXPECT_EQ(left_in_group(folder_.path()), 700u);
}

TEST_F(ControlGroup, of_the_older_kind_says_the_same) {
  write("memory.limit_in_bytes", "1000\n");
  write("memory.usage_in_bytes", "900\n");
  write("memory.stat", "cache 1\ntotal_cache 100\n");

  EXPECT_EQ(left_in_group(folder_.path()), 200u);
}

TEST_F(ControlGroup, without_limit_leaves_everything) {
  write("memory.max", "max\n");
  write("memory.current", "700\n");

  EXPECT_EQ(left_in_group(folder_.path()), std::numeric_limits<Bytes>::max());
}

TEST(Memory, is_there_for_this_test_and_used_by_it) {
  EXPECT_GT(available_memory(), MiB(1));
  EXPECT_GT(anonymous_memory(), KiB(100));
}

TEST(RequireFit, names_the_phase_and_both_numbers) {
  const std::vector<PhaseNeeds> phases = {{"text", 0, MiB(10)}, {"denoise", 0, MiB(300)}};

  EXPECT_THAT([&] { require_fit(phases, MiB(200)); },
              test::ThrowsError(ErrorKind::does_not_fit, AllOf(HasSubstr("'denoise'"), HasSubstr("300.0 MiB"),
                                                               HasSubstr("200.0 MiB"))));
  EXPECT_NO_THROW(require_fit(phases, MiB(300)));
}

}  // namespace
}  // namespace sluice::pipeline
