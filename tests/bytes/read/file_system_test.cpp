#include "bytes/read/file_system.h"

#include "support/temporary_folder.h"

#include <gmock/gmock.h>

#include <sys/mman.h>

namespace sluice::bytes {
namespace {

using test::TemporaryFolder;
using test::write_file;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

TEST(FileSystemName, of_memory_is_known) {
  File memory = File::adopt(::memfd_create("memory", MFD_CLOEXEC), "memory");

  EXPECT_EQ(file_system_name(memory), "tmpfs");
}

TEST(FileSystemName, that_is_unknown_is_its_number) {
  EXPECT_THAT(file_system_name(File::open("/proc/self/status")), StartsWith("file system 0x9fa0"));
}

TEST(FileSystemName, of_any_folder_can_stand_in_a_message) {
  TemporaryFolder folder;
  write_file(folder / "f", "x");

  EXPECT_THAT(file_system_name(File::open(folder / "f")), MatchesRegex("[a-z0-9 ]+"));
}

}  // namespace
}  // namespace sluice::bytes
