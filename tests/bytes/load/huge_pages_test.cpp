#include "bytes/load/huge_pages.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sluice::bytes {
namespace {

TEST(HugePages, are_offered_always_or_to_those_who_ask) {
  EXPECT_TRUE(offers_huge_pages("[always] madvise never"));
  EXPECT_TRUE(offers_huge_pages("always [madvise] never"));
  EXPECT_FALSE(offers_huge_pages("always madvise [never]"));
}

TEST(HugePages, are_not_offered_by_a_kernel_that_does_not_know_them) {
  EXPECT_FALSE(offers_huge_pages(""));
}

TEST(HugePages, are_judged_once_for_the_process) {
  const bool first = huge_pages_pay();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int again = 0; again < 100; ++again) EXPECT_EQ(huge_pages_pay(), first);
    });
  }
}

}  // namespace
}  // namespace sluice::bytes
