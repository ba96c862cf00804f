#include "support/collecting_sink.h"
#include "support/faulty_syscalls.h"
#include "support/random_checkpoint.h"
#include "support/throws_error.h"

#include <sluice/error.h>
#include <sluice/load.h>

#include <gmock/gmock.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <system_error>

namespace sluice {
namespace {

using test::CollectingSink;
using test::FaultySyscalls;
using test::OwnMemory;
using test::RandomCheckpoint;
using test::SyntheticFile;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::array kBackends{ReadBackend::automatic, ReadBackend::mmap, ReadBackend::pread,
                               ReadBackend::direct, ReadBackend::uring};

// Some MiB in a few tensors, at an odd offset.
SyntheticFile larger_file() {
  return SyntheticFile()
      .tensor("odd", Dtype::U8, {3})
      .tensor("large", Dtype::BF16, {1000, 1501})
      .tensor("small", Dtype::F32, {})
      .tensor("other", Dtype::F32, {300'000})
      .tensor("zeros", Dtype::F8_E4M3, {0});
}

LoadPlan plan_of(const std::filesystem::path& path) {
  return plan_load(Checkpoint::open(path));
}

TEST(Load, delivers_the_same_bytes_by_every_backend_thread_count_pool_and_chunk) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 25; ++round) {
    const RandomCheckpoint checkpoint(random, 1 + random() % 3, 1 + random() % 30,
                                      round % 5 == 0 ? 600'000 : 3000);
    const LoadPlan plan = plan_of(checkpoint.path);
    for (const ReadBackend backend : kBackends) {
      const ReadOptions options{.backend = backend,
                                .cache = std::array{CachePolicy::automatic, CachePolicy::keep,
                                                    CachePolicy::drop, CachePolicy::prefetch}[random() % 4],
                                .threads = static_cast<unsigned>(random() % 5),
                                .depth = static_cast<unsigned>(random() % 9),
                                .ring_direct = random() % 2 == 0,
                                .chunk = KiB(64) << random() % 5,
                                .pool = KiB(128) << random() % 6};
      const auto memory = std::array{OwnMemory::all, OwnMemory::none, OwnMemory::every_second}[random() % 3];
      SCOPED_TRACE(fmt::format("round {} backend {}", round, to_string(backend)));
      CollectingSink sink(plan, memory);

      const LoadReport report = load(plan, sink, options);

      ASSERT_EQ(sink.contents(), checkpoint.contents);
      ASSERT_TRUE(sink.all_complete());
      ASSERT_LE(report.pool_bytes, std::max(options.pool, MiB(4)));
    }
  }
}

TEST(Load, sends_tensors_larger_than_the_pool_through_it_in_pieces) {
  const auto file = larger_file().write();
  const LoadPlan plan = plan_of(file.path());
  CollectingSink sink(plan, OwnMemory::none);

  const LoadReport report = load(plan, sink, {.chunk = KiB(64), .pool = KiB(128)});

  EXPECT_EQ(sink.contents().at("large").size(), 3'002'000u);
  EXPECT_EQ(report.bytes, plan.read_bytes());
  EXPECT_GE(report.requests, 4'000'000u / KiB(64));
}

TEST(Load, reads_only_what_the_plan_wants) {
  const auto file = larger_file().write();
  const LoadPlan plan = plan_load(Checkpoint::open(file.path()), {.filter = {.include = {"other"}}});
  FaultySyscalls faults;
  CollectingSink sink(plan, OwnMemory::all);

  load(plan, sink, {.backend = ReadBackend::pread});

  EXPECT_EQ(faults.total_read(), 1'200'000u);
}

TEST(Load, applies_what_the_plan_declares_in_every_piece_size) {
  const auto file = larger_file().write();
  const LoadPlan plan = plan_load(Checkpoint::open(file.path()), {.transforms = Transforms()
                                                                                    .cast("large", Dtype::F32)
                                                                                    .transpose("large")
                                                                                    .slice("other", 0, 1, 100)
                                                                                    .quantize("other")});
  std::map<std::string, std::string> first;
  for (const Bytes chunk : {KiB(64), KiB(192), MiB(8)}) {
    for (const auto memory : {OwnMemory::all, OwnMemory::none}) {
      CollectingSink sink(plan, memory);
      load(plan, sink, {.chunk = chunk});
      if (first.empty()) first = sink.contents();
      EXPECT_EQ(sink.contents(), first);
      EXPECT_TRUE(sink.all_complete());
    }
  }
  EXPECT_EQ(first.at("large").size(), 6'004'000u);
  EXPECT_EQ(first.at("other_scale").size(), 4u);
}

TEST(Load, survives_short_reads_and_signals) {
  const auto file = larger_file().write();
  const LoadPlan plan = plan_of(file.path());
  for (const ReadBackend backend : {ReadBackend::pread, ReadBackend::direct}) {
    CollectingSink undisturbed(plan, OwnMemory::none), disturbed(plan, OwnMemory::none);
    load(plan, undisturbed, {.backend = backend});
    FaultySyscalls faults;
    faults.interrupt_often().move_at_most(65'536);

    load(plan, disturbed, {.backend = backend});

    EXPECT_EQ(disturbed.contents(), undisturbed.contents());
  }
}

TEST(Load, names_file_tensor_and_offset_of_a_failed_read_and_works_again_afterwards) {
  const auto file = larger_file().write();
  const LoadPlan plan = plan_of(file.path());
  for (const ReadBackend backend : {ReadBackend::pread, ReadBackend::direct}) {
    for (const auto memory : {OwnMemory::all, OwnMemory::none}) {
      CollectingSink failed(plan, memory);
      {
        FaultySyscalls faults;
        // A direct read tries the file first.
        faults.fail_nth_read(5, EIO);
        EXPECT_THAT(
            [&] { load(plan, failed, {.backend = backend, .threads = 2, .chunk = KiB(64)}); },
            ThrowsError(ErrorKind::io, AllOf(HasSubstr(file.path().string()), HasSubstr("tensor 'large'"),
                                             HasSubstr("input/output error"))));
      }
      CollectingSink again(plan, memory);
      load(plan, again, {.backend = backend});
      EXPECT_TRUE(again.all_complete());
    }
  }
}

TEST(Load, refuses_a_file_that_is_cut_short_meanwhile) {
  for (const ReadBackend backend : kBackends) {
    SCOPED_TRACE(to_string(backend));
    const auto file = larger_file().write();
    const LoadPlan plan = plan_of(file.path());
    std::filesystem::resize_file(file.path(), 2'000'000);
    CollectingSink sink(plan, OwnMemory::all);

    EXPECT_THAT([&] { load(plan, sink, {.backend = backend}); },
                ThrowsError(ErrorKind::corrupt_file, HasSubstr(file.path().string())));
  }
}

TEST(Load, refuses_a_file_that_was_written_to_meanwhile) {
  const auto file = larger_file().write();
  const LoadPlan plan = plan_of(file.path());
  larger_file().metadata("key", "value").write_to(file.path());
  CollectingSink sink(plan, OwnMemory::all);

  EXPECT_THAT([&] { load(plan, sink); },
              ThrowsError(ErrorKind::corrupt_file, HasSubstr("while it was in use")));
}

class FailingSink final : public TensorSink {
 public:
  std::span<std::byte> destination(std::size_t) override { return {}; }
  void take(std::size_t, Bytes, std::span<const std::byte>) override {
    throw std::runtime_error("the sink is full");
  }
};

TEST(Load, ends_all_readers_when_the_sink_fails) {
  const auto file = larger_file().write();
  const LoadPlan plan = plan_of(file.path());
  for (const ReadBackend backend : kBackends) {
    FailingSink sink;

    EXPECT_THAT([&] { load(plan, sink, {.backend = backend, .chunk = KiB(64), .pool = KiB(256)}); },
                testing::ThrowsMessage<std::runtime_error>(HasSubstr("the sink is full")));
  }
}

class CancellingSink final : public TensorSink {
 public:
  explicit CancellingSink(CancelToken& cancel) : cancel_(cancel) {}
  std::span<std::byte> destination(std::size_t) override { return {}; }
  void take(std::size_t, Bytes, std::span<const std::byte>) override { cancel_.cancel(); }

 private:
  CancelToken& cancel_;
};

TEST(Load, stops_when_cancelled) {
  const auto file = larger_file().write();
  const LoadPlan plan = plan_of(file.path());
  for (const ReadBackend backend : kBackends) {
    CancelToken cancel;
    CancellingSink sink(cancel);

    EXPECT_THAT([&] { load(plan, sink, {.backend = backend, .chunk = KiB(64)}, nullptr, &cancel); },
                ThrowsError(ErrorKind::interrupted, HasSubstr("interrupted")));
  }
}

TEST(Load, reads_by_itself_where_the_system_refuses_a_thread) {
  const auto file = larger_file().write();
  const LoadPlan plan = plan_of(file.path());
  CollectingSink with_threads(plan, OwnMemory::none), alone(plan, OwnMemory::none);
  load(plan, with_threads);
  FaultySyscalls faults;
  syscalls().before_thread = [] { throw std::system_error(EAGAIN, std::generic_category()); };

  const LoadReport report = load(plan, alone, {.backend = ReadBackend::pread, .chunk = KiB(64)});

  EXPECT_EQ(alone.contents(), with_threads.contents());
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("refused a reader thread")));
}

TEST(Load, reads_a_ring_with_threads_instead_where_the_system_forbids_it_and_says_so_once) {
  const auto file = larger_file().write();
  const LoadPlan plan = plan_of(file.path());
  FaultySyscalls faults;
  syscalls().before_thread = [] { throw std::system_error(EAGAIN, std::generic_category()); };
  CollectingSink sink(plan, OwnMemory::none);

  const LoadReport report = load(plan, sink, {.backend = ReadBackend::uring});

  EXPECT_TRUE(sink.all_complete());
  EXPECT_THAT(report.warnings, testing::Not(IsEmpty()));
}

TEST(Load, says_of_each_shard_how_and_why_it_was_read) {
  std::mt19937 random(1);
  const RandomCheckpoint checkpoint(random, 2, 5, 1000);
  const LoadPlan plan = plan_of(checkpoint.path);
  CollectingSink sink(plan, OwnMemory::all);

  const LoadReport report = load(plan, sink);

  ASSERT_THAT(report.shards, SizeIs(2));
  EXPECT_THAT(report.shards[0].backend, testing::Not(IsEmpty()));
  EXPECT_THAT(report.shards[0].reason, testing::Not(IsEmpty()));
  EXPECT_EQ(report.shards[0].bytes + report.shards[1].bytes, plan.read_bytes());
}

TEST(Load, refuses_chunks_and_pools_outside_their_limits) {
  const auto file = larger_file().write();
  const LoadPlan plan = plan_of(file.path());
  CollectingSink sink(plan, OwnMemory::all);

  EXPECT_THAT([&] { load(plan, sink, {.chunk = 1000}); }, ThrowsError(ErrorKind::usage, HasSubstr("chunk")));
  EXPECT_THAT([&] { load(plan, sink, {.pool = 1000}); }, ThrowsError(ErrorKind::usage, HasSubstr("pool")));
}

// Counted on a hole: no byte is on the disk.
TEST(Load, makes_fewer_than_256_read_calls_a_gibibyte_at_ascending_offsets) {
  const test::TemporaryFolder folder;
  const std::string header = R"({"a":{"dtype":"U8","shape":[268435456],"data_offsets":[0,268435456]}})";
  const std::filesystem::path path = folder / "hole.safetensors";
  SyntheticFile().header(header).write_to(path);
  std::filesystem::resize_file(path, 8 + header.size() + 268'435'456);
  const LoadPlan plan = plan_of(path);
  static std::vector<off_t> offsets;
  offsets.clear();
  FaultySyscalls faults;
  syscalls().preadv2 = [](int fd, const iovec* to, int count, off_t offset, int flags) {
    offsets.push_back(offset);
    return ::preadv2(fd, to, count, offset, flags);
  };
  CollectingSink sink(plan, OwnMemory::all);

  const LoadReport report = load(plan, sink, {.backend = ReadBackend::pread, .threads = 1});

  EXPECT_LT(report.requests, 256u / 4);
  EXPECT_EQ(report.requests, offsets.size());
  EXPECT_TRUE(std::ranges::is_sorted(offsets));
}

}  // namespace
}  // namespace sluice
