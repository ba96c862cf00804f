// What is found out about a file before it is read.
#include "bytes/read/choose_reader.h"

#include "support/faulty_syscalls.h"
#include "support/resident_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/sysmacros.h>
#include <sstream>

namespace sluice::bytes {
namespace {

using test::FaultySyscalls;
using test::ResidentFile;
using testing::IsEmpty;
using testing::Not;

TEST(FileFacts, tell_the_size_and_what_of_it_is_cached) {
  ResidentFile file(MiB(4));
  file.bring_in(0, MiB(1));

  const ShardFacts facts = collect_facts(File::open(file.path()));

  EXPECT_EQ(facts.file_size, MiB(4));
  EXPECT_NEAR(facts.cached_share, 0.25, 0.01);
  EXPECT_THAT(facts.file_system, Not(IsEmpty()));
}

TEST(FileFacts, of_an_empty_file_are_no_division_by_zero) {
  test::TemporaryFolder folder;
  test::write_file(folder / "empty", "");

  const ShardFacts facts = collect_facts(File::open(folder / "empty"));

  EXPECT_EQ(facts.file_size, 0u);
  EXPECT_EQ(facts.cached_share, 0);
}

TEST(FileFacts, bring_next_to_nothing_of_the_file_into_memory) {
  ResidentFile file(MiB(16));

  collect_facts(File::open(file.path()));

  EXPECT_LT(file.share(), 0.01);
}

TEST(FileFacts, say_that_direct_reads_are_impossible_where_the_open_or_the_first_read_is_refused) {
  ResidentFile file(MiB(1));
  const File open = File::open(file.path());

  {
    FaultySyscalls faults;
    faults.refuse_direct_open(EINVAL);
    EXPECT_FALSE(collect_facts(open).direct_possible);
  }
  {
    FaultySyscalls faults;
    faults.refuse_direct_reads(EINVAL);
    EXPECT_FALSE(collect_facts(open).direct_possible);
  }
}

TEST(FileFacts, say_that_uncached_reads_are_impossible_where_the_flag_is_refused) {
  ResidentFile file(MiB(1));
  const File open = File::open(file.path());

  for (int error : {EOPNOTSUPP, EINVAL}) {
    FaultySyscalls faults;
    faults.refuse_uncached(error);
    EXPECT_FALSE(collect_facts(open).uncached_possible);
  }
}

// As a system that takes whatever it is asked for.
TEST(FileFacts, say_what_is_possible) {
  ResidentFile file(MiB(1));
  const File open = File::open(file.path());
  FaultySyscalls restored;
  syscalls().open = [](const char* path, int flags) { return ::open(path, flags & ~O_DIRECT); };
  syscalls().preadv2 = [](int, const iovec*, int, off_t, int) -> ssize_t { return 0; };
  syscalls().statx = [](int, const char*, int, unsigned, struct ::statx*) {
    errno = ENOSYS;
    return -1;
  };

  const ShardFacts facts = collect_facts(open);

  EXPECT_TRUE(facts.direct_possible);
  EXPECT_TRUE(facts.uncached_possible);
}

TEST(FileFacts, are_asked_again_after_a_signal) {
  ResidentFile file(MiB(1));
  const File open = File::open(file.path());
  const ShardFacts expected = collect_facts(open);
  FaultySyscalls faults;
  faults.interrupt_often();

  const ShardFacts facts = collect_facts(open);

  EXPECT_EQ(facts.direct_possible, expected.direct_possible);
  EXPECT_EQ(facts.uncached_possible, expected.uncached_possible);
}

TEST(FileFacts, cost_no_read_that_the_backend_has_no_use_for) {
  ResidentFile file(MiB(1));
  const File open = File::open(file.path());
  FaultySyscalls faults;

  collect_facts(open, {.backend = ReadBackend::pread});
  collect_facts(open, {.backend = ReadBackend::mmap, .cache = CachePolicy::drop});
  collect_facts(open, {.backend = ReadBackend::direct, .cache = CachePolicy::drop});

  EXPECT_EQ(faults.read_calls(), 0);
}

TEST(FileSystem, is_known_by_its_number) {
  EXPECT_EQ(known_file_system(0xef53).name, "ext4");
  EXPECT_EQ(known_file_system(0xef53).kind, FileSystemKind::local);
  EXPECT_EQ(known_file_system(0x01021994).name, "tmpfs");
  EXPECT_EQ(known_file_system(0x01021994).kind, FileSystemKind::memory);
  EXPECT_EQ(known_file_system(0x858458f6).kind, FileSystemKind::memory);
  EXPECT_EQ(known_file_system(0x794c7630).name, "overlayfs");
  EXPECT_EQ(known_file_system(0x794c7630).kind, FileSystemKind::stacked);
}

TEST(FileSystem, is_a_network_one_where_bytes_come_from_elsewhere) {
  constexpr std::uint32_t kNfs = 0x6969, kCifs = 0xff534d42, kSmb2 = 0xfe534d42, kFuse = 0x65735546,
                          kNineP = 0x01021997, kCeph = 0x00c36400;
  for (std::uint32_t number : {kNfs, kCifs, kSmb2, kFuse, kNineP, kCeph})
    EXPECT_EQ(known_file_system(number).kind, FileSystemKind::network) << std::hex << number;
}

TEST(FileSystem, that_is_not_known_has_its_number_as_name_and_counts_as_local) {
  EXPECT_EQ(known_file_system(0x12345678).name, "file system 0x12345678");
  EXPECT_EQ(known_file_system(0x12345678).kind, FileSystemKind::local);
}

TEST(FileSystem, has_in_the_mount_table_the_name_of_its_kind_of_fuse) {
  std::istringstream table(
      "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
      "41 22 0:36 / /mnt/data rw,nosuid shared:9 master:1 - fuse.sshfs host:/data rw,user_id=0\n"
      "42 22 0:37 / /mnt/host rw - virtiofs host rw\n");

  EXPECT_EQ(mounted_name(table, gnu_dev_makedev(0, 37)), "virtiofs");
  table.clear();
  table.seekg(0);
  EXPECT_EQ(mounted_name(table, gnu_dev_makedev(0, 36)), "fuse.sshfs");
  table.clear();
  table.seekg(0);
  EXPECT_EQ(mounted_name(table, gnu_dev_makedev(0, 99)), "");
}

}  // namespace
}  // namespace sluice::bytes
