#include "bytes/read/mapping.h"

#include "support/faulty_syscalls.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace sluice::bytes {
namespace {

using test::FaultySyscalls;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kPage = 4096;

std::size_t count_of(std::span<const std::byte> bytes, char value) {
  return static_cast<std::size_t>(std::ranges::count(bytes, static_cast<std::byte>(value)));
}

TEST(Mapping, shows_the_bytes_of_the_file) {
  TemporaryFolder folder;
  write_file(folder / "f", std::string(10 * kPage + 5, 'x'));
  Mapping mapping(File::open(folder / "f"), 10 * kPage + 5);

  EXPECT_EQ(count_of(mapping.bytes(), 'x'), 10 * kPage + 5);
  EXPECT_FALSE(mapping.damaged());
}

TEST(Mapping, whose_file_shrinks_reads_as_zeros_and_is_damaged) {
  TemporaryFolder folder;
  write_file(folder / "f", std::string(10 * kPage, 'x'));
  Mapping mapping(File::open(folder / "f"), 10 * kPage);

  std::filesystem::resize_file(folder / "f", 4 * kPage);

  EXPECT_EQ(count_of(mapping.bytes(), 'x'), 4 * kPage);
  EXPECT_EQ(count_of(mapping.bytes(), '\0'), 6 * kPage);
  EXPECT_TRUE(mapping.damaged());
}

TEST(Mapping, whose_file_shrinks_leaves_others_alone) {
  TemporaryFolder folder;
  write_file(folder / "f", std::string(4 * kPage, 'x'));
  write_file(folder / "g", std::string(4 * kPage, 'y'));
  Mapping f(File::open(folder / "f"), 4 * kPage), g(File::open(folder / "g"), 4 * kPage);

  std::filesystem::resize_file(folder / "f", 0);

  EXPECT_EQ(count_of(f.bytes(), '\0'), 4 * kPage);
  EXPECT_EQ(count_of(g.bytes(), 'y'), 4 * kPage);
  EXPECT_FALSE(g.damaged());
}

TEST(Mapping, survives_a_shrinking_file_in_every_thread) {
  TemporaryFolder folder;
  constexpr std::size_t kPages = 256;
  write_file(folder / "f", std::string(kPages * kPage, 'x'));
  Mapping mapping(File::open(folder / "f"), kPages * kPage);
  std::filesystem::resize_file(folder / "f", 0);

  std::vector<std::size_t> zeros(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < zeros.size(); ++i) {
      threads.emplace_back([&, i] {
        zeros[i] = count_of(mapping.bytes().subspan(i * kPages / 8 * kPage, kPages / 8 * kPage), '\0');
      });
    }
  }

  for (std::size_t count : zeros) EXPECT_EQ(count, kPages / 8 * kPage);
  EXPECT_TRUE(mapping.damaged());
}

TEST(Mapping, of_another_file_after_a_damaged_one_is_whole) {
  TemporaryFolder folder;
  for (int round = 0; round < 3; ++round) {
    write_file(folder / "f", std::string(4 * kPage, 'x'));
    Mapping mapping(File::open(folder / "f"), 4 * kPage);
    ASSERT_FALSE(mapping.damaged());
    std::filesystem::resize_file(folder / "f", 0);
    ASSERT_EQ(count_of(mapping.bytes(), '\0'), 4 * kPage);
  }
}

TEST(Mapping, that_the_system_refuses_names_the_size_and_the_remedy) {
  TemporaryFolder folder;
  write_file(folder / "f", "x");
  FaultySyscalls faults;
  faults.fail_mmap(ENOMEM);

  EXPECT_THAT([&] { Mapping(File::open(folder / "f"), MiB(3)); },
              ThrowsError(ErrorKind::io, AllOf(HasSubstr("cannot map 3.0 MiB"), HasSubstr("address space")),
                          HasSubstr("--read-backend pread")));
}

// What follows ends the process: each runs in a process of its own, and leaves no file behind in it.
class MappingDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Installs the handler over the one that is there, then touches a page that is not ours, beyond its file's
  // end.
  static void fault_elsewhere() {
    Mapping ours(File::open("/proc/self/exe"), 1);
    int memory = ::memfd_create("shrinking", MFD_CLOEXEC);
    if (::ftruncate(memory, kPage) != 0) ::_exit(1);
    auto* page = static_cast<volatile char*>(::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, memory, 0));
    if (::ftruncate(memory, 0) != 0) ::_exit(1);
    static_cast<void>(*page);
  }
};

TEST_F(MappingDeathTest, passes_foreign_faults_on_to_the_handler_before) {
  auto body = [] {
    std::signal(SIGBUS, [](int) { ::_exit(42); });
    fault_elsewhere();
  };

  EXPECT_EXIT(body(), ::testing::ExitedWithCode(42), "");
}

TEST_F(MappingDeathTest, lets_a_foreign_fault_end_the_process_when_there_was_no_handler) {
  auto body = [] {
    std::signal(SIGBUS, SIG_DFL);
    fault_elsewhere();
  };

  EXPECT_EXIT(body(), ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace sluice::bytes
