#include "bytes/read/ring.h"

#include "support/aligned_memory.h"
#include "support/faulty_ring.h"
#include "support/faulty_syscalls.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace sluice::bytes {
namespace {

using test::AlignedMemory;
using test::FaultyRing;
using test::FaultySyscalls;
using test::noise;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using ::testing::_;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr unsigned kBlock = 512;

enum class Way { buffered, direct };

// A file of noise and memory for all of it, in whole blocks.  Direct reads are taken on any file system.
class RingWorld {
 public:
  explicit RingWorld(Bytes file_size)
      : content(noise(file_size)), memory((file_size + 2 * kBlock - 1) / kBlock * kBlock) {
    write_file(path, content);
    file_ = std::make_unique<File>(File::open(path));
    syscall_faults.direct_alignment(kBlock);
  }

  Ring ring(Way way, unsigned depth) { return ring(way, depth, memory.bytes()); }
  Ring ring(Way way, unsigned depth, std::span<std::byte> pool) {
    return Ring(
        *file_, way == Way::direct, depth, pool,
        [](Bytes offset) { return fmt::format("tensor 'at {}'", offset / 1000); },
        [this](const std::string& line) { warnings.push_back(line); }, content.size());
  }

  // What goes to the place in `memory` that it has in the file.
  std::span<std::byte> place(Bytes offset, Bytes size) const { return memory.bytes().subspan(offset, size); }
  bool is_there(Bytes offset, Bytes size) const {
    return memory.text(offset + size).substr(offset) == content.substr(offset, size);
  }
  // The file in pieces of `piece` bytes, as many at a time as the ring takes.
  void read_all(Ring& ring, Bytes piece) {
    const Bytes block = ring.alignment().offset;
    for (Bytes at = 0; at < content.size() || ring.in_flight() > 0;) {
      if (at < content.size() && ring.in_flight() < ring.depth()) {
        const Bytes rest = (content.size() - at + block - 1) / block * block;
        ring.submit(at, at, place(at, std::min(piece, rest)));
        at += piece;
      } else {
        ring.wait();
      }
    }
  }

  void drop_from_page_cache() const {
    EXPECT_EQ(::fsync(file_->descriptor()), 0);
    EXPECT_EQ(::posix_fadvise(file_->descriptor(), 0, 0, POSIX_FADV_DONTNEED), 0);
  }

  TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.safetensors";
  const std::string content;
  const AlignedMemory memory;
  std::vector<std::string> warnings;
  FaultySyscalls syscall_faults;
  FaultyRing ring_faults;

 private:
  std::unique_ptr<File> file_;
};

class RingTest : public ::testing::TestWithParam<Way> {};

// Where the system forbids io_uring there is nothing to read with; that it is refused then, Ring tests below.
std::vector<Way> ways_here() {
  return Ring::possible() ? std::vector{Way::buffered, Way::direct} : std::vector<Way>{};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RingTest);
INSTANTIATE_TEST_SUITE_P(Ways, RingTest, ::testing::ValuesIn(ways_here()), [](const auto& param) {
  return std::string(param.param == Way::direct ? "direct" : "buffered");
});

TEST_P(RingTest, delivers_every_byte_through_short_interrupted_and_late_reads) {
  unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    RingWorld world(1 + random() % 60'000);
    if (random() % 2 == 0) world.ring_faults.move_at_most(1 + random() % 3000);
    if (random() % 2 == 0) world.ring_faults.interrupt_often();
    if (random() % 2 == 0) world.ring_faults.be_busy();
    Ring ring = world.ring(GetParam(), 1 + random() % 9);

    world.read_all(ring, (1 + random() % 20) * kBlock);

    ASSERT_TRUE(world.is_there(0, world.content.size())) << world.content.size();
  }
}

TEST_P(RingTest, returns_each_read_once_by_its_id) {
  RingWorld world(10 * kBlock);
  Ring ring = world.ring(GetParam(), 4);
  ring.submit(70, 0, world.place(0, kBlock));
  ring.submit(71, kBlock, world.place(kBlock, kBlock));
  ring.submit(72, 5 * kBlock, world.place(5 * kBlock, 2 * kBlock));
  EXPECT_EQ(ring.in_flight(), 3u);

  const std::vector ids = {ring.wait(), ring.wait(), ring.wait()};

  EXPECT_THAT(ids, UnorderedElementsAre(70, 71, 72));
  EXPECT_EQ(ring.in_flight(), 0u);
  EXPECT_TRUE(world.is_there(0, 2 * kBlock));
  EXPECT_TRUE(world.is_there(5 * kBlock, 2 * kBlock));
}

TEST_P(RingTest, makes_one_request_a_read) {
  RingWorld world(100 * kBlock);
  Ring ring = world.ring(GetParam(), 8);
  const auto before = ring.requests();

  world.read_all(ring, 10 * kBlock);

  EXPECT_EQ(ring.requests() - before, 10u);
}

TEST_P(RingTest, reads_into_memory_outside_its_pool) {
  RingWorld world(100 * kBlock);
  Ring ring = world.ring(GetParam(), 8, world.place(25 * kBlock, 20 * kBlock));

  world.read_all(ring, 10 * kBlock);

  EXPECT_TRUE(world.is_there(0, 100 * kBlock));
}

TEST_P(RingTest, works_unregistered_where_the_system_locks_no_more_memory_and_says_so_once) {
  RingWorld world(100 * kBlock);
  world.ring_faults.refuse_buffers(ENOMEM);
  Ring ring = world.ring(GetParam(), 4);

  world.read_all(ring, 10 * kBlock);

  EXPECT_TRUE(world.is_there(0, 100 * kBlock));
  EXPECT_THAT(world.warnings,
              ElementsAre(AllOf(HasSubstr("model.safetensors"), HasSubstr("does not register the buffers"),
                                HasSubstr("cannot allocate memory"), HasSubstr("locked memory is"))));
}

TEST_P(RingTest, works_where_the_system_does_not_register_the_file) {
  RingWorld world(100 * kBlock + 3);
  world.ring_faults.refuse_files(EMFILE);
  Ring ring = world.ring(GetParam(), 4);

  world.read_all(ring, 10 * kBlock);

  EXPECT_TRUE(world.is_there(0, 100 * kBlock + 3));
  EXPECT_THAT(world.warnings,
              Contains(HasSubstr("does not register the file (too many open files)")).Times(1));
}

TEST_P(RingTest, names_file_tensor_and_place_of_a_failing_disk_and_can_go_on) {
  RingWorld world(100 * kBlock);
  Ring ring = world.ring(GetParam(), 4);
  world.ring_faults.fail_reads(1, 1, EIO);
  ring.submit(1, 20 * kBlock, world.place(20 * kBlock, kBlock));

  EXPECT_THAT([&] { ring.wait(); },
              ThrowsError(ErrorKind::io, AllOf(HasSubstr("model.safetensors: cannot read tensor 'at 10'"),
                                               HasSubstr("at byte 10240: input/output error"))));
  EXPECT_EQ(ring.in_flight(), 0u);

  ring.submit(2, 20 * kBlock, world.place(20 * kBlock, kBlock));
  EXPECT_EQ(ring.wait(), 2u);
  EXPECT_TRUE(world.is_there(20 * kBlock, kBlock));
}

TEST_P(RingTest, brings_the_other_reads_when_one_has_failed) {
  RingWorld world(10 * kBlock);
  Ring ring = world.ring(GetParam(), 4);
  world.ring_faults.fail_reads(1, 1, EIO);
  for (Bytes i = 0; i < 3; ++i) ring.submit(i, i * kBlock, world.place(i * kBlock, kBlock));
  EXPECT_THAT([&] { ring.wait(); }, ThrowsError(ErrorKind::io, _));

  ring.wait();
  ring.wait();

  EXPECT_EQ(ring.in_flight(), 0u);
}

TEST_P(RingTest, of_a_file_that_shrinks_names_both_sizes) {
  RingWorld world(100'001);
  Ring ring = world.ring(GetParam(), 4);
  for (Bytes size : {Bytes(100'000), Bytes(99'840), Bytes(5'000), Bytes(0)}) {
    std::filesystem::resize_file(world.path, size);
    ring.submit(1, 195 * kBlock, world.place(195 * kBlock, GetParam() == Way::direct ? kBlock : 161));

    EXPECT_THAT([&] { ring.wait(); },
                ThrowsError(ErrorKind::corrupt_file,
                            HasSubstr(fmt::format("has {} bytes, but must have 100001", size))));
  }
}

// Nothing but the memory tells: the kernel writes to it until the last read has come back.  From a real disk
// that takes a while.
TEST_P(RingTest, waits_for_what_is_in_flight_when_it_ends) {
  RingWorld world(MiB(8));
  world.drop_from_page_cache();
  {
    Ring ring = world.ring(GetParam(), 8);
    for (Bytes i = 0; i < 8; ++i) ring.submit(i, MiB(i), world.place(MiB(i), MiB(1)));
  }

  EXPECT_TRUE(world.is_there(0, MiB(8)));
}

TEST_P(RingTest, takes_too_many_reads_and_a_wait_for_none_for_a_bug) {
  RingWorld world(10 * kBlock);
  Ring ring = world.ring(GetParam(), 1);

  EXPECT_THAT([&] { ring.wait(); }, ThrowsError(ErrorKind::internal, HasSubstr("no read in flight")));
  ring.submit(1, 0, world.place(0, kBlock));
  EXPECT_THAT([&] { ring.submit(2, 0, world.place(0, kBlock)); },
              ThrowsError(ErrorKind::internal, HasSubstr("more than 1 reads")));
}

class DirectRing : public RingTest {};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DirectRing);
INSTANTIATE_TEST_SUITE_P(Ways, DirectRing, ::testing::ValuesIn([] {
                           std::vector<Way> ways = ways_here();
                           std::erase(ways, Way::buffered);
                           return ways;
                         }()));

TEST_P(DirectRing, that_is_refused_in_the_middle_reads_on_through_the_cache_and_says_so_once) {
  RingWorld world(100 * kBlock + 5);
  Ring ring = world.ring(Way::direct, 4);
  world.ring_faults.fail_reads(3, 4, EINVAL);

  world.read_all(ring, 10 * kBlock);

  EXPECT_TRUE(world.is_there(0, 100 * kBlock + 5));
  EXPECT_THAT(world.warnings,
              Contains(AllOf(HasSubstr("model.safetensors"), HasSubstr("page cache"))).Times(1));
}

TEST_P(DirectRing, takes_a_read_that_does_not_fit_its_alignment_for_a_bug) {
  RingWorld world(10 * kBlock);
  Ring ring = world.ring(Way::direct, 4);

  EXPECT_THAT([&] { ring.submit(1, 1, world.place(0, kBlock)); }, ThrowsError(ErrorKind::internal, _));
  EXPECT_THAT([&] { ring.submit(1, 0, world.place(1, kBlock)); }, ThrowsError(ErrorKind::internal, _));
  EXPECT_THAT([&] { ring.submit(1, 0, world.place(0, 1)); }, ThrowsError(ErrorKind::internal, _));
  EXPECT_EQ(ring.in_flight(), 0u);
}

TEST_P(DirectRing, that_cannot_open_names_the_file_system_and_the_remedy) {
  RingWorld world(10 * kBlock);
  world.syscall_faults.refuse_direct_open(EINVAL);

  EXPECT_THAT([&] { world.ring(Way::direct, 4); },
              ThrowsError(ErrorKind::io, HasSubstr("past the page cache"), HasSubstr("pread")));
}

TEST(Ring, that_the_limit_of_locked_memory_forbids_names_the_limit) {
  RingWorld world(1000);
  world.ring_faults.forbid(ENOMEM);

  EXPECT_THAT([&] { world.ring(Way::buffered, 4); },
              ThrowsError(ErrorKind::io, HasSubstr("cannot allocate memory (locked memory is "),
                          HasSubstr("ulimit -l")));
}

TEST(Ring, that_the_system_forbids_is_refused_with_the_remedy) {
  for (int error : {EPERM, ENOSYS}) {
    RingWorld world(1000);
    world.ring_faults.forbid(error);

    EXPECT_FALSE(Ring::possible());
    EXPECT_THAT([&] { world.ring(Way::buffered, 4); },
                ThrowsError(ErrorKind::io, HasSubstr("model.safetensors: io_uring is refused"),
                            HasSubstr("--read-backend pread")));
  }
}

// Whatever the system here is: it reads right, or says what to do.
TEST(Ring, of_a_real_system_reads_past_the_cache_or_refuses) {
  const std::filesystem::path path = std::filesystem::path(SLUICE_BINARY_DIR) / "ring_test.tmp";
  const std::string content = noise(1'000'003);
  write_file(path, content);
  File file = File::open(path);
  std::filesystem::remove(path);
  AlignedMemory memory(1 << 20);

  try {
    Ring ring(file, true, 4, memory.bytes(), {}, {});
    const Bytes piece = KiB(64);
    for (Bytes at = 0; at < content.size(); at += piece) {
      if (ring.in_flight() == ring.depth()) ring.wait();
      ring.submit(at, at, memory.bytes().subspan(at, piece));
    }
    while (ring.in_flight() > 0) ring.wait();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.hint(), HasSubstr("--read-backend pread"));
    return;
  }

  EXPECT_TRUE(memory.text(content.size()) == content);
}

}  // namespace
}  // namespace sluice::bytes
