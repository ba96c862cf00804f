#include "bytes/read/shard_reader.h"

#include "bytes/read/page_size.h"
#include "support/aligned_memory.h"
#include "support/faulty_syscalls.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <fstream>
#include <list>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace sluice::bytes {
namespace {

using test::AlignedMemory;
using test::FaultySyscalls;
using test::noise;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ReadWay kWays[] = {ReadWay::mmap, ReadWay::pread, ReadWay::pread_uncached, ReadWay::direct};
constexpr unsigned kBlock = 512;

// A file, and a reader of it that gathers its warnings.  Direct reads are taken on any file system.
class ReaderWorld {
 public:
  explicit ReaderWorld(std::string content) : content_(std::move(content)) {
    write_file(path_, content_);
    faults.direct_alignment(kBlock);
  }

  std::unique_ptr<ShardReader> open(ReadWay way) {
    file_.emplace_back(File::open(path_));
    return open_shard_reader(
        way, file_.back(), [](Bytes offset) { return fmt::format("tensor 'at {}'", offset / 1000); },
        [this](const std::string& line) { warnings.push_back(line); }, content_.size());
  }
  // Blocks that hold [offset, offset + size); what lies in that range.
  std::string read(ShardReader& reader, Bytes offset, Bytes size) {
    const Bytes block = reader.alignment().offset;
    const Bytes begin = offset / block * block;
    AlignedMemory memory((offset - begin + size + block - 1) / block * block);
    const std::span<std::byte> spans[] = {memory.bytes()};
    reader.read(begin, spans);
    return memory.text(offset - begin + size).substr(offset - begin);
  }
  std::string content(Bytes offset, Bytes size) const { return content_.substr(offset, size); }
  const std::filesystem::path& path() const { return path_; }

  std::vector<std::string> warnings;
  FaultySyscalls faults;

 private:
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "model.safetensors";
  std::string content_;
  std::list<File> file_;
};

class EveryReader : public ::testing::TestWithParam<ReadWay> {};

INSTANTIATE_TEST_SUITE_P(Ways, EveryReader, ::testing::ValuesIn(kWays), [](const auto& param) {
  std::string name(to_string(param.param));
  std::ranges::replace(name, ' ', '_');
  return name;
});

// Cuts `memory` into spans of random multiples of `block`, some empty.
std::vector<std::span<std::byte>> cut_randomly(std::span<std::byte> memory, Bytes block,
                                               std::mt19937& random) {
  std::vector<std::span<std::byte>> spans;
  while (!memory.empty()) {
    const Bytes most = std::min<Bytes>(memory.size() / block, 20);
    const Bytes size = random() % (most + 1) * block;
    spans.push_back(memory.first(size));
    memory = memory.subspan(size);
  }
  return spans;
}

TEST_P(EveryReader, delivers_any_range_into_any_spans_through_short_and_interrupted_reads) {
  unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    const Bytes size = 1 + random() % 40'000;
    ReaderWorld world(noise(size));
    const unsigned alignments[] = {512, 4096, 65536};
    world.faults.direct_alignment(alignments[random() % 3]);
    if (random() % 2 == 0) world.faults.move_at_most(1 + random() % 3000);
    if (random() % 2 == 0) world.faults.interrupt_often();
    auto reader = world.open(GetParam());

    const Bytes block = reader->alignment().offset;
    const Bytes begin = random() % size / block * block;
    const Bytes wanted = block + random() % (size - begin) / block * block;
    AlignedMemory memory(block == 1 ? std::min(wanted, size - begin) : wanted);
    reader->read(begin, cut_randomly(memory.bytes(), block, random));

    const Bytes there = std::min<Bytes>(memory.bytes().size(), size - begin);
    ASSERT_TRUE(memory.text(there) == world.content(begin, there)) << size << " " << begin << " " << wanted;
    ASSERT_THAT(world.warnings, IsEmpty());
  }
}

TEST_P(EveryReader, of_an_empty_file_reads_nothing) {
  ReaderWorld world("");
  auto reader = world.open(GetParam());

  EXPECT_NO_THROW(reader->read(0, {}));
  EXPECT_THAT([&] { world.read(*reader, 0, 1); },
              ThrowsError(ErrorKind::corrupt_file, HasSubstr("the file has 0 bytes")));
}

TEST_P(EveryReader, serves_many_threads_at_once) {
  ReaderWorld world(noise(200'000));
  auto reader = world.open(GetParam());

  std::vector<std::string> got(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < got.size(); ++i) {
      threads.emplace_back([&, i] { got[i] = world.read(*reader, i * 1000, 100'000 + i); });
    }
  }

  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i] == world.content(i * 1000, 100'000 + i)) << i;
  }
}

TEST_P(EveryReader, of_a_file_that_shrinks_names_file_tensor_and_both_sizes_and_recovers_with_the_file) {
  ReaderWorld world(noise(100'000));
  auto reader = world.open(GetParam());
  std::filesystem::resize_file(world.path(), 5'000);

  EXPECT_THAT([&] { world.read(*reader, 1'000, 90'000); },
              ThrowsError(ErrorKind::corrupt_file,
                          AllOf(HasSubstr("model.safetensors: cannot read tensor 'at 5' at byte 5000"),
                                HasSubstr("has 5000 bytes, but must have 100000")),
                          HasSubstr("fetch it again")));
  EXPECT_EQ(world.read(*reader, 1'000, 3'000), world.content(1'000, 3'000));

  write_file(world.path(), noise(100'000));
  EXPECT_TRUE(world.read(*reader, 1'000, 90'000) == world.content(1'000, 90'000));
}

// The last page stays mapped and is filled up with zeros, the last block is only partly there.
TEST_P(EveryReader, of_a_file_that_lost_its_last_byte_says_so) {
  ReaderWorld world(noise(100'001));
  auto reader = world.open(GetParam());
  std::filesystem::resize_file(world.path(), 100'000);

  EXPECT_THAT([&] { world.read(*reader, 99'000, 1'001); },
              ThrowsError(ErrorKind::corrupt_file,
                          AllOf(HasSubstr("at byte 100000"), HasSubstr("must have 100001"))));
}

TEST_P(EveryReader, of_a_file_that_was_cut_before_it_was_opened_says_so) {
  ReaderWorld world(noise(100'000));
  std::filesystem::resize_file(world.path(), 50'000);
  auto reader = world.open(GetParam());

  EXPECT_EQ(world.read(*reader, 49'000, 500), world.content(49'000, 500));
  EXPECT_THAT([&] { world.read(*reader, 50'000, 10); },
              ThrowsError(ErrorKind::corrupt_file, HasSubstr("must have 100000")));
}

TEST_P(EveryReader, refuses_what_lies_behind_the_end) {
  ReaderWorld world(noise(10 * kBlock));
  auto reader = world.open(GetParam());

  EXPECT_THAT([&] { world.read(*reader, 12 * kBlock, kBlock); }, ThrowsError(ErrorKind::corrupt_file, _));
}

class CallingReader : public EveryReader {};

INSTANTIATE_TEST_SUITE_P(Ways, CallingReader,
                         ::testing::Values(ReadWay::pread, ReadWay::pread_uncached, ReadWay::direct));

TEST_P(CallingReader, names_file_tensor_and_place_of_a_failing_disk_and_can_try_again) {
  ReaderWorld world(noise(100 * kBlock));
  auto reader = world.open(GetParam());
  world.faults.move_at_most(10 * kBlock).fail_nth_read(world.faults.read_calls() + 3, EIO);

  EXPECT_THAT([&] { world.read(*reader, 0, 100 * kBlock); },
              ThrowsError(ErrorKind::io,
                          AllOf(HasSubstr("model.safetensors: cannot read tensor 'at 10'"),
                                HasSubstr("at byte 10240: input/output error")),
                          HasSubstr("see the system log")));
  EXPECT_TRUE(world.read(*reader, 0, 100 * kBlock) == world.content(0, 100 * kBlock));
}

TEST_P(CallingReader, of_a_file_that_shrinks_between_two_calls_names_the_place) {
  ReaderWorld world(noise(100 * kBlock));
  auto reader = world.open(GetParam());
  world.faults.move_at_most(10 * kBlock).before_nth_read(world.faults.read_calls() + 3, [&] {
    std::filesystem::resize_file(world.path(), 15 * kBlock);
  });

  EXPECT_THAT([&] { world.read(*reader, 0, 100 * kBlock); },
              ThrowsError(ErrorKind::corrupt_file, AllOf(HasSubstr("tensor 'at 10' at byte 10240"),
                                                         HasSubstr("has 7680 bytes, but must have 51200"))));
}

TEST_P(CallingReader, fills_many_spans_with_one_call) {
  ReaderWorld world(noise(IOV_MAX * kBlock));
  auto reader = world.open(GetParam());
  AlignedMemory memory(IOV_MAX * kBlock);
  std::vector<std::span<std::byte>> spans;
  for (Bytes i = 0; i < IOV_MAX; ++i) spans.push_back(memory.bytes().subspan(i * kBlock, kBlock));
  const auto before = reader->requests();

  reader->read(0, spans);

  EXPECT_TRUE(memory.text(memory.bytes().size()) == world.content(0, IOV_MAX * kBlock));
  EXPECT_EQ(reader->requests() - before, 1u);
}

TEST_P(CallingReader, makes_a_second_call_for_more_spans_than_one_takes) {
  ReaderWorld world(noise((IOV_MAX + 1) * kBlock));
  auto reader = world.open(GetParam());
  AlignedMemory memory((IOV_MAX + 1) * kBlock);
  std::vector<std::span<std::byte>> spans;
  for (Bytes i = 0; i <= IOV_MAX; ++i) spans.push_back(memory.bytes().subspan(i * kBlock, kBlock));
  const auto before = reader->requests();

  reader->read(0, spans);

  EXPECT_TRUE(memory.text(memory.bytes().size()) == world.content(0, (IOV_MAX + 1) * kBlock));
  EXPECT_EQ(reader->requests() - before, 2u);
}

TEST_P(CallingReader, counts_every_call) {
  ReaderWorld world(noise(40 * kBlock));
  auto reader = world.open(GetParam());
  world.faults.move_at_most(10 * kBlock).interrupt_often();
  const auto before = reader->requests();
  const int calls = world.faults.read_calls();

  world.read(*reader, 0, 40 * kBlock);

  EXPECT_EQ(reader->requests() - before, static_cast<unsigned>(world.faults.read_calls() - calls));
  EXPECT_GE(world.faults.read_calls() - calls, 7);
}

TEST(UncachedReader, goes_on_cached_where_the_system_knows_no_such_reads_and_says_so_once) {
  for (int error : {EOPNOTSUPP, EINVAL}) {
    ReaderWorld world(noise(10'000));
    world.faults.refuse_uncached(error);
    auto reader = world.open(ReadWay::pread_uncached);
    EXPECT_EQ(reader->way(), ReadWay::pread_uncached);

    for (int i = 0; i < 3; ++i) EXPECT_TRUE(world.read(*reader, 10, 9'000) == world.content(10, 9'000));

    EXPECT_EQ(reader->way(), ReadWay::pread);
    EXPECT_EQ(reader->requests(), 4u);
    EXPECT_THAT(world.warnings,
                ElementsAre(AllOf(HasSubstr("model.safetensors"), HasSubstr("RWF_DONTCACHE"))));
  }
}

TEST(DirectReader, that_cannot_open_names_the_file_system_and_the_remedy) {
  ReaderWorld world(noise(10'000));
  world.faults.refuse_direct_open(EINVAL);

  EXPECT_THAT([&] { world.open(ReadWay::direct); },
              ThrowsError(ErrorKind::io,
                          AllOf(HasSubstr("model.safetensors: cannot be read past the page cache on "),
                                HasSubstr("invalid argument")),
                          HasSubstr("--read-backend pread")));
}

TEST(DirectReader, whose_first_read_is_refused_is_refused_when_opened) {
  for (bool told : {true, false}) {
    ReaderWorld world(noise(10'000));
    if (!told) world.faults.hide_direct_alignment();
    world.faults.refuse_direct_reads(EINVAL);

    EXPECT_THAT([&] { world.open(ReadWay::direct); },
                ThrowsError(ErrorKind::io, HasSubstr("past the page cache"), HasSubstr("pread")));
  }
}

TEST(DirectReader, tries_alignments_where_the_system_tells_none) {
  for (unsigned alignment : {4096, 65536}) {
    ReaderWorld world(noise(300'000));
    world.faults.direct_alignment(alignment).hide_direct_alignment();

    auto reader = world.open(ReadWay::direct);

    EXPECT_EQ(reader->alignment().offset, alignment);
    EXPECT_EQ(reader->alignment().memory, alignment);
    EXPECT_TRUE(world.read(*reader, 100'000, 200'000) == world.content(100'000, 200'000));
    EXPECT_THAT(world.warnings, IsEmpty());
  }
}

TEST(DirectReader, that_is_refused_in_the_middle_reads_on_through_the_cache_and_says_so_once) {
  ReaderWorld world(noise(100 * kBlock + 7));
  auto reader = world.open(ReadWay::direct);
  world.faults.move_at_most(10 * kBlock).fail_nth_read(world.faults.read_calls() + 3, EINVAL);

  EXPECT_TRUE(world.read(*reader, 0, 100 * kBlock + 7) == world.content(0, 100 * kBlock + 7));
  world.faults.refuse_direct_reads(EINVAL);
  EXPECT_TRUE(world.read(*reader, 0, 100 * kBlock + 7) == world.content(0, 100 * kBlock + 7));

  EXPECT_THAT(world.warnings, ElementsAre(AllOf(HasSubstr("model.safetensors"), HasSubstr("page cache"))));
}

TEST(DirectReader, takes_a_read_that_does_not_fit_its_alignment_for_a_bug) {
  ReaderWorld world(noise(10 * kBlock));
  auto reader = world.open(ReadWay::direct);
  AlignedMemory memory(2 * kBlock);
  auto read = [&](Bytes offset, Bytes skip, Bytes size) {
    const std::span<std::byte> spans[] = {memory.bytes().subspan(skip, size)};
    reader->read(offset, spans);
  };

  EXPECT_NO_THROW(read(kBlock, 0, kBlock));
  EXPECT_THAT([&] { read(1, 0, kBlock); }, ThrowsError(ErrorKind::internal, HasSubstr("model.safetensors")));
  EXPECT_THAT([&] { read(0, 1, kBlock); }, ThrowsError(ErrorKind::internal, HasSubstr("alignment")));
  EXPECT_THAT([&] { read(0, 0, kBlock - 1); }, ThrowsError(ErrorKind::internal, HasSubstr("alignment")));
}

// Whatever the file system here is: it reads right, or says what to do.
TEST(DirectReader, of_a_real_file_system_reads_or_refuses) {
  for (const char* folder : {SLUICE_BINARY_DIR, "/dev/shm"}) {
    const std::filesystem::path path = std::filesystem::path(folder) / "direct_reader_test.tmp";
    write_file(path, noise(1'000'003));
    File file = File::open(path);
    std::filesystem::remove(path);

    std::string got = noise(1'000'003);
    try {
      auto reader = open_shard_reader(ReadWay::direct, file, {}, {});
      const Bytes block = reader->alignment().offset;
      AlignedMemory memory((got.size() + block - 1) / block * block);
      const std::span<std::byte> spans[] = {memory.bytes().first(block), memory.bytes().subspan(block)};
      reader->read(0, spans);
      got = memory.text(got.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io);
      EXPECT_THAT(error.hint(), HasSubstr("--read-backend pread"));
    }

    EXPECT_TRUE(got == noise(1'000'003));
  }
}

TEST(MmapReader, that_the_system_refuses_names_the_remedy) {
  ReaderWorld world(noise(10'000));
  world.faults.fail_mmap(ENOMEM);

  EXPECT_THAT([&] { world.open(ReadWay::mmap); },
              ThrowsError(ErrorKind::io, HasSubstr("cannot map"), HasSubstr("--read-backend pread")));
}

TEST(MmapReader, makes_no_read_calls) {
  ReaderWorld world(noise(10'000));
  auto reader = world.open(ReadWay::mmap);

  world.read(*reader, 0, 10'000);

  EXPECT_EQ(world.faults.read_calls(), 0);
  EXPECT_EQ(reader->requests(), 0u);
}

// Pages of files that this process has mapped.
Bytes mapped_file_bytes() {
  Bytes size = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> size >> resident >> shared;
  return shared * page_size();
}

TEST(MmapReader, lets_go_of_the_pages_of_a_range) {
  ReaderWorld world(noise(MiB(32)));
  auto reader = world.open(ReadWay::mmap);
  world.read(*reader, 0, MiB(32));
  const Bytes before = mapped_file_bytes();

  reader->let_go(MiB(4), MiB(28));

  EXPECT_NEAR(static_cast<double>(before - mapped_file_bytes()), MiB(24), MiB(1));
  EXPECT_TRUE(world.read(*reader, 0, MiB(32)) == world.content(0, MiB(32)));
}

}  // namespace
}  // namespace sluice::bytes
