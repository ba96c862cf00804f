// What memory there is, and that a load which needs more is refused with the numbers.
#include "base/system_memory.h"

#include "support/temporary_folder.h"
#include "support/throws_error.h"

#include <sluice/memory.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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

TEST_F(ControlGroup, counts_tmpfs_as_held) {
  write("memory.max", "1000\n");
  write("memory.current", "700\n");
  write("memory.stat", "anon 300\nfile 400\nshmem 150\n");

  EXPECT_EQ(left_in_group(folder_.path()), 550u);
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

TEST(MemoryNeed, is_the_sum_of_its_parts_times_the_multiplier) {
  const MemoryNeed need{.targets = MiB(100), .pool = MiB(20), .staging = MiB(8), .multiplier = 1.5};

  EXPECT_EQ(need.total(), MiB(192));
}

TEST(MemoryNeed, beyond_any_number_stays_the_greatest) {
  constexpr Bytes kGreatest = std::numeric_limits<Bytes>::max();

  EXPECT_EQ((MemoryNeed{.targets = kGreatest - 1, .pool = 2}.total()), kGreatest);
  EXPECT_EQ((MemoryNeed{.targets = kGreatest / 2, .multiplier = 3}.total()), kGreatest);
}

TEST(RequireMemory, accepts_what_just_fits) {
  EXPECT_NO_THROW(require_memory({.targets = MiB(10)}, MiB(10), "a"));
  EXPECT_ANY_THROW(require_memory({.targets = MiB(10) + 1}, MiB(10), "a"));
}

TEST(RequireMemory, names_the_file_both_numbers_and_what_the_need_consists_of) {
  const MemoryNeed need{.targets = MiB(300), .pool = MiB(32), .staging = MiB(4), .multiplier = 2};

  EXPECT_THAT(
      [&] { require_memory(need, MiB(200), "model.safetensors"); },
      test::ThrowsError(ErrorKind::does_not_fit,
                        AllOf(HasSubstr("model.safetensors: not enough memory: needs 672.0 MiB "
                                        "(300.0 MiB of tensors, 32.0 MiB of read buffers, 4.0 MiB of "),
                              HasSubstr("all times 2)"), HasSubstr("200.0 MiB available"),
                              HasSubstr("that this process holds")),
                        AllOf(HasSubstr("--include"), HasSubstr("--world"), Not(HasSubstr("--pool")))));
}

TEST(RequireMemory, proposes_a_pool_that_is_enough_where_the_pool_is_what_does_not_fit) {
  MemoryNeed need{.targets = MiB(300), .pool = GiB(1), .staging = MiB(3), .multiplier = 1.25};
  const Bytes available = MiB(500) + 12'345;
  std::string hint;
  try {
    require_memory(need, available, "a");
  } catch (const Error& error) {
    hint = error.hint();
  }

  ASSERT_THAT(hint, testing::StartsWith("try --pool "));
  need.pool = parse_bytes(hint.substr(11));

  EXPECT_EQ(need.pool, MiB(97));
  EXPECT_NO_THROW(require_memory(need, available, "a"));
}

}  // namespace
}  // namespace sluice
