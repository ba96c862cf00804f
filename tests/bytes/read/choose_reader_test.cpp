#include "bytes/read/choose_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::bytes {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A cold file on a local disk of a system that knows everything, into touched memory.
ShardFacts facts_of_a_disk() {
  return {.file_system = "ext4",
          .file_size = GiB(10),
          .direct_possible = true,
          .uncached_possible = true,
          .wanted = GiB(10),
          .available_memory = GiB(16)};
}

ReadChoice choose(const ShardFacts& facts, const ReadOptions& options = {}, unsigned cores = 8) {
  return choose_reader(facts, options, cores);
}

TEST(ChooseReader, reads_a_cold_file_directly_with_the_share_as_reason) {
  ShardFacts facts = facts_of_a_disk();
  facts.cached_share = 0.031;

  const ReadChoice choice = choose(facts);

  EXPECT_EQ(choice.way, ReadWay::direct);
  EXPECT_FALSE(choice.ring);
  EXPECT_FALSE(choice.drop_behind);
  EXPECT_FALSE(choice.prefetch);
  EXPECT_EQ(choice.reason, "ext4 takes direct reads, 4 % of the file is in the page cache");
}

TEST(ChooseReader, takes_two_to_four_threads_for_direct_reads) {
  EXPECT_EQ(choose(facts_of_a_disk(), {}, 1).threads, 2u);
  EXPECT_EQ(choose(facts_of_a_disk(), {}, 3).threads, 3u);
  EXPECT_EQ(choose(facts_of_a_disk(), {}, 64).threads, 4u);
}

TEST(ChooseReader, reads_what_is_mostly_cached_through_the_cache) {
  ShardFacts facts = facts_of_a_disk();
  facts.cached_share = 0.6199;

  const ReadChoice choice = choose(facts);

  EXPECT_EQ(choice.way, ReadWay::pread);
  EXPECT_EQ(choice.threads, 4u);
  EXPECT_FALSE(choice.drop_behind);
  EXPECT_EQ(choice.reason, "61 % of the file is in the page cache");
}

TEST(ChooseReader, calls_half_of_a_file_mostly_cached_and_less_not) {
  ShardFacts facts = facts_of_a_disk();

  facts.cached_share = 0.5;
  EXPECT_EQ(choose(facts).way, ReadWay::pread);

  facts.cached_share = 0.49;
  EXPECT_EQ(choose(facts).way, ReadWay::direct);
}

TEST(ChooseReader, reads_files_that_lie_in_memory_through_the_cache) {
  ShardFacts facts = facts_of_a_disk();
  facts.file_system = "tmpfs";
  facts.kind = FileSystemKind::memory;

  for (CachePolicy policy : {CachePolicy::automatic, CachePolicy::drop, CachePolicy::prefetch}) {
    const ReadChoice choice = choose(facts, {.cache = policy});

    EXPECT_EQ(choice.way, ReadWay::pread);
    EXPECT_EQ(choice.threads, 4u);
    EXPECT_FALSE(choice.drop_behind);
    EXPECT_FALSE(choice.prefetch);
    EXPECT_EQ(choice.reason, "tmpfs lies in memory");
  }
}

TEST(ChooseReader, reads_a_network_mount_in_order_with_prefetch_and_few_threads) {
  ShardFacts facts = facts_of_a_disk();
  facts.file_system = "fuse.sshfs";
  facts.kind = FileSystemKind::network;

  const ReadChoice choice = choose(facts);

  EXPECT_EQ(choice.way, ReadWay::pread);
  EXPECT_TRUE(choice.prefetch);
  EXPECT_FALSE(choice.drop_behind);
  EXPECT_EQ(choice.threads, 2u);
  EXPECT_EQ(choice.reason, "fuse.sshfs is a network file system");
  EXPECT_EQ(choose(facts, {}, 1).threads, 1u);
}

TEST(ChooseReader, drops_a_network_file_behind_the_reader_where_asked) {
  ShardFacts facts = facts_of_a_disk();
  facts.kind = FileSystemKind::network;

  const ReadChoice choice = choose(facts, {.cache = CachePolicy::drop});

  EXPECT_EQ(choice.way, ReadWay::pread);
  EXPECT_TRUE(choice.drop_behind);
  EXPECT_TRUE(choice.prefetch);
}

TEST(ChooseReader, reads_many_small_tensors_through_the_cache) {
  ShardFacts facts = facts_of_a_disk();

  facts.small_reads = 5000;
  EXPECT_EQ(choose(facts).way, ReadWay::direct);

  facts.small_reads = 5001;
  EXPECT_EQ(choose(facts).way, ReadWay::pread);
  EXPECT_EQ(choose(facts).reason, "5001 reads are smaller than 64 KiB, more than 5000");

  EXPECT_EQ(choose(facts, {.small_reads_cap = 6000}).way, ReadWay::direct);
}

TEST(ChooseReader, treats_a_stacked_file_system_by_what_it_can) {
  ShardFacts facts = facts_of_a_disk();
  facts.file_system = "overlayfs";
  facts.kind = FileSystemKind::stacked;
  EXPECT_EQ(choose(facts).way, ReadWay::direct);

  facts.direct_possible = false;
  EXPECT_EQ(choose(facts).way, ReadWay::pread_uncached);
  EXPECT_EQ(choose(facts).reason, "overlayfs takes no direct reads");
}

TEST(ChooseReader, reads_uncached_where_direct_reads_are_impossible) {
  ShardFacts facts = facts_of_a_disk();
  facts.direct_possible = false;

  const ReadChoice choice = choose(facts);

  EXPECT_EQ(choice.way, ReadWay::pread_uncached);
  EXPECT_FALSE(choice.drop_behind);
  EXPECT_EQ(choice.threads, 4u);
  EXPECT_EQ(choice.reason, "ext4 takes no direct reads");
}

TEST(ChooseReader, reads_plainly_where_nothing_else_is_possible) {
  ShardFacts facts = facts_of_a_disk();
  facts.direct_possible = facts.uncached_possible = false;

  const ReadChoice choice = choose(facts);

  EXPECT_EQ(choice.way, ReadWay::pread);
  EXPECT_FALSE(choice.drop_behind);
}

TEST(ChooseReader, drops_behind_a_plain_read_of_more_than_the_free_memory) {
  ShardFacts facts = facts_of_a_disk();
  facts.direct_possible = facts.uncached_possible = false;
  facts.available_memory = GiB(8);

  const ReadChoice choice = choose(facts);

  EXPECT_EQ(choice.way, ReadWay::pread);
  EXPECT_TRUE(choice.drop_behind);
  EXPECT_THAT(choice.reason, AllOf(HasSubstr("10.0 GiB"), HasSubstr("8.0 GiB of free memory")));
  EXPECT_FALSE(choose(facts, {.cache = CachePolicy::keep}).drop_behind);
}

TEST(ChooseReader, keeps_in_the_page_cache_what_is_to_be_kept) {
  const ReadChoice choice = choose(facts_of_a_disk(), {.cache = CachePolicy::keep});

  EXPECT_EQ(choice.way, ReadWay::pread);
  EXPECT_FALSE(choice.drop_behind);
  EXPECT_FALSE(choice.prefetch);
  EXPECT_THAT(choice.reason, HasSubstr("--cache keep"));
}

TEST(ChooseReader, prefetches_a_local_file_where_asked) {
  const ReadChoice choice = choose(facts_of_a_disk(), {.cache = CachePolicy::prefetch});

  EXPECT_EQ(choice.way, ReadWay::pread);
  EXPECT_TRUE(choice.prefetch);
  EXPECT_THAT(choice.reason, HasSubstr("--cache prefetch"));
}

TEST(ChooseReader, under_drop_still_reads_a_cold_file_directly) {
  const ReadChoice choice = choose(facts_of_a_disk(), {.cache = CachePolicy::drop});

  EXPECT_EQ(choice.way, ReadWay::direct);
  EXPECT_FALSE(choice.drop_behind);
}

TEST(ChooseReader, under_drop_gives_every_buffered_way_a_dropping_window) {
  ShardFacts cached = facts_of_a_disk(), small = facts_of_a_disk(), no_direct = facts_of_a_disk();
  cached.cached_share = 0.9;
  small.small_reads = 9000;
  no_direct.direct_possible = false;

  for (ShardFacts facts : {cached, small, no_direct}) {
    ReadChoice choice = choose(facts, {.cache = CachePolicy::drop});
    EXPECT_EQ(choice.way, ReadWay::pread_uncached);
    EXPECT_TRUE(choice.drop_behind);

    facts.uncached_possible = false;
    choice = choose(facts, {.cache = CachePolicy::drop});
    EXPECT_EQ(choice.way, ReadWay::pread);
    EXPECT_TRUE(choice.drop_behind);
  }
}

TEST(ChooseReader, takes_an_explicit_backend_whatever_the_facts) {
  ShardFacts facts = facts_of_a_disk();
  facts.cached_share = 1;
  facts.kind = FileSystemKind::network;
  facts.direct_possible = false;

  const ReadChoice direct = choose(facts, {.backend = ReadBackend::direct});
  const ReadChoice mapped = choose(facts, {.backend = ReadBackend::mmap});
  const ReadChoice plain = choose(facts, {.backend = ReadBackend::pread});

  EXPECT_EQ(direct.way, ReadWay::direct);
  EXPECT_EQ(direct.reason, "asked for (--read-backend direct)");
  EXPECT_EQ(mapped.way, ReadWay::mmap);
  EXPECT_EQ(plain.way, ReadWay::pread);
  for (const ReadChoice& choice : {direct, mapped, plain}) {
    EXPECT_FALSE(choice.ring);
    EXPECT_FALSE(choice.drop_behind);
    EXPECT_FALSE(choice.prefetch);
  }
}

TEST(ChooseReader, gives_explicit_buffered_backends_the_policy_that_was_asked_for) {
  const ShardFacts facts = facts_of_a_disk();
  auto choose_with = [&](ReadBackend backend, CachePolicy policy) {
    return choose(facts, {.backend = backend, .cache = policy});
  };

  EXPECT_EQ(choose_with(ReadBackend::pread, CachePolicy::drop).way, ReadWay::pread_uncached);
  EXPECT_TRUE(choose_with(ReadBackend::pread, CachePolicy::drop).drop_behind);
  EXPECT_EQ(choose_with(ReadBackend::mmap, CachePolicy::drop).way, ReadWay::mmap);
  EXPECT_TRUE(choose_with(ReadBackend::mmap, CachePolicy::drop).drop_behind);
  EXPECT_TRUE(choose_with(ReadBackend::pread, CachePolicy::prefetch).prefetch);
  EXPECT_TRUE(choose_with(ReadBackend::mmap, CachePolicy::prefetch).prefetch);
  EXPECT_FALSE(choose_with(ReadBackend::direct, CachePolicy::drop).drop_behind);
  EXPECT_FALSE(choose_with(ReadBackend::direct, CachePolicy::prefetch).prefetch);
}

TEST(ChooseReader, lets_a_ring_past_the_cache_where_the_file_can_and_it_may) {
  ShardFacts facts = facts_of_a_disk();
  const ReadOptions ring{.backend = ReadBackend::uring};

  EXPECT_TRUE(choose(facts, ring).ring);
  EXPECT_EQ(choose(facts, ring).way, ReadWay::direct);
  EXPECT_EQ(choose(facts, {.backend = ReadBackend::uring, .ring_direct = false}).way, ReadWay::pread);
  EXPECT_EQ(choose(facts, {.backend = ReadBackend::uring, .cache = CachePolicy::keep}).way, ReadWay::pread);

  facts.direct_possible = false;
  EXPECT_TRUE(choose(facts, ring).ring);
  EXPECT_EQ(choose(facts, ring).way, ReadWay::pread);
}

TEST(ChooseReader, drops_behind_a_ring_where_asked) {
  const ReadOptions drop{.backend = ReadBackend::uring, .cache = CachePolicy::drop};

  EXPECT_TRUE(choose(facts_of_a_disk(), drop).drop_behind);
  EXPECT_FALSE(choose(facts_of_a_disk(), {.backend = ReadBackend::uring}).drop_behind);
}

TEST(ChooseReader, takes_the_threads_that_it_is_told_to_take) {
  ShardFacts network = facts_of_a_disk();
  network.kind = FileSystemKind::network;

  for (const ShardFacts& facts : {facts_of_a_disk(), network}) {
    EXPECT_EQ(choose(facts, {.threads = 7}).threads, 7u);
    EXPECT_EQ(choose(facts, {.backend = ReadBackend::mmap, .threads = 1}).threads, 1u);
  }
}

TEST(ChooseReader, never_calls_a_file_cached_as_a_whole_that_is_not_nor_the_other_way) {
  ShardFacts facts = facts_of_a_disk();

  facts.cached_share = 0.9999;
  EXPECT_THAT(choose(facts).reason, HasSubstr("99 %"));
  facts.cached_share = 1;
  EXPECT_THAT(choose(facts).reason, HasSubstr("100 %"));
  facts.cached_share = 0.0001;
  EXPECT_THAT(choose(facts).reason, HasSubstr("1 %"));
  facts.cached_share = 0;
  EXPECT_THAT(choose(facts).reason, HasSubstr(" 0 %"));
}

}  // namespace
}  // namespace sluice::bytes
