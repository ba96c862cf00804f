// What a process has spent, and the most memory it held.
#include "base/process_usage.h"
#include "base/peak_memory.h"
#include "base/system_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

namespace sluice {
namespace {

// Pages that are taken when they are first written to, and given back at the end.
class FreshPages {
 public:
  explicit FreshPages(std::size_t size)
      : size_(size),
        memory_(static_cast<char*>(
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    ::madvise(memory_, size, MADV_NOHUGEPAGE);
  }
  ~FreshPages() { ::munmap(memory_, size_); }
  void touch() {
    for (std::size_t at = 0; at < size_; at += page()) const_cast<volatile char*>(memory_)[at] = 1;
  }
  static std::size_t page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

 private:
  std::size_t size_;
  char* memory_;
};

TEST(ProcessUsage, counts_the_faults_and_the_time_between_two_looks) {
  FreshPages pages(1000 * FreshPages::page());
  const ProcessUsage before = process_usage();

  pages.touch();
  UsedBetween used = process_usage() - before;

  EXPECT_GE(used.page_faults, 1000u);
  while (used.cpu_seconds == 0) used = process_usage() - before;  // ends, since it computes
  EXPECT_GT(used.seconds, 0);
}

TEST(PeakMemory, remembers_what_was_given_back) {
  const Bytes before = anonymous_memory();
  PeakMemory peak;
  {
    FreshPages pages(MiB(64));
    pages.touch();
    while (peak.so_far() < before + MiB(60)) std::this_thread::yield();
  }

  const Bytes most = peak.finish();

  EXPECT_GE(most, before + MiB(60));
  EXPECT_LT(anonymous_memory(), before + MiB(32));
  EXPECT_EQ(peak.finish(), most);
}

}  // namespace
}  // namespace sluice
