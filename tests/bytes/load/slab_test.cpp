#include <sluice/slab.h>

#include "support/faulty_syscalls.h"
#include "support/throws_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace sluice {
namespace {

using test::FaultySyscalls;
using test::ThrowsError;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

// Whether each page of the memory is present.
std::vector<bool> present(std::span<std::byte> memory) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> states(memory.size() / page);
  EXPECT_EQ(::mincore(memory.data(), memory.size(), states.data()), 0);
  std::vector<bool> pages;
  for (unsigned char state : states) pages.push_back(state & 1);
  return pages;
}

std::size_t count_present(std::span<std::byte> memory) {
  auto pages = present(memory);
  return static_cast<std::size_t>(std::count(pages.begin(), pages.end(), true));
}

TEST(Slab, holds_nothing_before_it_is_asked_to) {
  Slab slab;

  EXPECT_THAT(slab.bytes(), IsEmpty());
  EXPECT_EQ(slab.touched(), 0u);
}

TEST(Slab, begins_at_a_huge_page_and_holds_what_was_asked_for) {
  for (Bytes size : {Bytes(1), KiB(100), MiB(2), MiB(3) + 5}) {
    Slab slab(HugePages::never);
    slab.reserve(size);

    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slab.bytes().data()) % MiB(2), 0u);
    EXPECT_GE(slab.bytes().size(), size);
    EXPECT_LT(slab.bytes().size(), size + MiB(2));
    std::memset(slab.bytes().data(), 0x55, slab.bytes().size());
  }
}

TEST(Slab, keeps_its_memory_and_what_it_holds_when_asked_for_less) {
  Slab slab;
  slab.reserve(MiB(4));
  const auto before = slab.bytes();
  before[MiB(3)] = std::byte{7};
  slab.mark_touched(MiB(4));

  for (Bytes size : {MiB(4), MiB(1), Bytes(0)}) slab.reserve(size);

  EXPECT_EQ(slab.bytes().data(), before.data());
  EXPECT_EQ(slab.bytes().size(), before.size());
  EXPECT_EQ(slab.bytes()[MiB(3)], std::byte{7});
  EXPECT_EQ(slab.touched(), MiB(4));
}

TEST(Slab, starts_anew_when_it_grows) {
  Slab slab(HugePages::never);
  slab.reserve(MiB(2));
  slab.touch(MiB(2), 1);

  slab.reserve(MiB(6));

  EXPECT_EQ(slab.touched(), 0u);
  EXPECT_EQ(count_present(slab.bytes()), 0u);
}

// The memory that a slab holds when the system is asked for more.
std::span<std::byte> held;
bool held_was_mapped = false;

TEST(Slab, gives_its_memory_back_before_it_takes_more) {
  Slab slab;
  slab.reserve(MiB(2));
  held = slab.bytes();
  held_was_mapped = true;
  FaultySyscalls restored;
  syscalls().mmap = [](void* at, std::size_t size, int protection, int flags, int file, off_t offset) {
    unsigned char page = 0;
    held_was_mapped = ::mincore(held.data(), 1, &page) == 0;
    return ::mmap(at, size, protection, flags, file, offset);
  };

  slab.reserve(MiB(8));

  EXPECT_FALSE(held_was_mapped);
}

TEST(Slab, makes_the_pages_present_that_it_touches_and_no_others) {
  Slab slab(HugePages::never);
  slab.reserve(MiB(40));
  const auto page = static_cast<Bytes>(::sysconf(_SC_PAGESIZE));

  EXPECT_GT(slab.touch(MiB(24) + 1, 3), 0);

  EXPECT_EQ(slab.touched(), MiB(24) + 1);
  EXPECT_THAT(present(slab.bytes().first(MiB(24) + page)), Each(true));
  EXPECT_EQ(count_present(slab.bytes()), MiB(24) / page + 1);
}

TEST(Slab, goes_on_touching_where_it_ended_and_leaves_what_is_there) {
  Slab slab(HugePages::never);
  slab.reserve(MiB(20));
  slab.touch(MiB(3), 1);
  std::memset(slab.bytes().data(), 0x5a, MiB(3));

  slab.touch(MiB(20), 2);
  slab.touch(MiB(1), 2);

  EXPECT_EQ(slab.touched(), MiB(20));
  EXPECT_THAT(present(slab.bytes()), Each(true));
  EXPECT_EQ(std::count(slab.bytes().begin(), slab.bytes().end(), std::byte{0x5a}), MiB(3));
}

TEST(Slab, touches_page_by_page_where_the_kernel_cannot_in_one_call) {
  Slab slab(HugePages::never);
  slab.reserve(MiB(20));
  std::memset(slab.bytes().data(), 0x5a, MiB(5));
  FaultySyscalls faults;
  faults.fail_madvise(EINVAL);

  slab.touch(MiB(20), 3);

  EXPECT_THAT(present(slab.bytes()), Each(true));
  EXPECT_EQ(std::count(slab.bytes().begin(), slab.bytes().end(), std::byte{0x5a}), MiB(5));
}

TEST(Slab, refuses_to_touch_what_the_system_has_no_memory_for) {
  Slab slab;
  slab.reserve(MiB(20));
  FaultySyscalls faults;
  faults.fail_madvise(ENOMEM);

  EXPECT_THAT([&] { slab.touch(MiB(20), 3); },
              ThrowsError(ErrorKind::does_not_fit, HasSubstr("cannot take")));
  EXPECT_EQ(slab.touched(), 0u);
}

TEST(Slab, keeps_the_larger_mark_within_what_it_holds) {
  Slab slab;
  slab.reserve(MiB(2));

  slab.mark_touched(KiB(900));
  slab.mark_touched(KiB(100));
  EXPECT_EQ(slab.touched(), KiB(900));

  slab.mark_touched(MiB(99));
  EXPECT_EQ(slab.touched(), slab.bytes().size());
}

TEST(Slab, keeps_the_largest_mark_of_several_threads) {
  Slab slab;
  slab.reserve(MiB(2));
  {
    std::vector<std::jthread> threads;
    for (Bytes start : {0, 1, 2}) {
      threads.emplace_back([&slab, start] {
        for (Bytes end = start; end <= 30'000; end += 3) slab.mark_touched(end);
      });
    }
  }

  EXPECT_EQ(slab.touched(), 30'000u);
}

TEST(Slab, refuses_what_the_system_refuses_with_the_number_and_the_limit) {
  for (Bytes size : {Bytes(1) << 60, ~Bytes(0), ~Bytes(0) - MiB(3)}) {
    Slab slab;
    EXPECT_THAT([&] { slab.reserve(size); },
                ThrowsError(ErrorKind::does_not_fit,
                            AllOf(HasSubstr("cannot take"), HasSubstr(" TiB"), HasSubstr("address space")),
                            HasSubstr("ulimit -v")));
  }
}

TEST(Slab, can_be_asked_for_less_after_a_refusal) {
  Slab slab;
  slab.reserve(MiB(2));
  EXPECT_ANY_THROW(slab.reserve(Bytes(1) << 60));
  EXPECT_THAT(slab.bytes(), IsEmpty());
  EXPECT_EQ(slab.touched(), 0u);

  slab.reserve(MiB(4));

  EXPECT_EQ(slab.bytes().size(), MiB(4));
}

TEST(Slab, that_is_moved_takes_its_memory_along) {
  Slab slab;
  slab.reserve(MiB(2));
  slab.mark_touched(10);
  const std::byte* begin = slab.bytes().data();

  Slab other = std::move(slab);

  EXPECT_EQ(other.bytes().data(), begin);
  EXPECT_EQ(other.touched(), 10u);
}

TEST(Slab, has_the_pages_that_it_was_told_to_have) {
  Slab always(HugePages::always), never(HugePages::never);
  always.reserve(MiB(2));
  never.reserve(MiB(2));

  EXPECT_TRUE(always.huge());
  EXPECT_FALSE(never.huge());
}

TEST(Slab, has_no_huge_pages_where_the_kernel_has_none) {
  FaultySyscalls faults;
  faults.fail_madvise(EINVAL);
  Slab slab(HugePages::always);

  slab.reserve(MiB(2));

  EXPECT_FALSE(slab.huge());
}

}  // namespace
}  // namespace sluice
