#include "bytes/read/chunks.h"

#include "support/faulty_syscalls.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

namespace sluice::bytes {
namespace {

using test::FaultySyscalls;

TEST(Chunks, cover_every_byte_once) {
  for (Bytes total : {Bytes{0}, Bytes{1}, MiB(31), MiB(32), MiB(100) + 7}) {
    std::mutex mutex;
    std::map<Bytes, Bytes> pieces;
    for_each_chunk(total, [&](Bytes begin, Bytes size) {
      std::lock_guard lock(mutex);
      pieces[begin] = size;
    });

    Bytes covered = 0;
    for (auto [begin, size] : pieces) {
      EXPECT_EQ(begin, covered);
      covered += size;
    }
    EXPECT_EQ(covered, total);
  }
}

TEST(Chunks, cover_every_byte_once_by_any_number_of_threads) {
  for (unsigned threads : {0, 1, 3, 64}) {
    for (Bytes total : {Bytes{0}, Bytes{1}, MiB(8), MiB(20) + 7}) {
      std::mutex mutex;
      std::map<Bytes, Bytes> pieces;
      for_each_chunk(total, threads, [&](Bytes begin, Bytes size) {
        std::lock_guard lock(mutex);
        pieces[begin] = size;
      });

      Bytes covered = 0;
      for (auto [begin, size] : pieces) {
        EXPECT_EQ(begin, covered);
        EXPECT_EQ(begin % MiB(8), 0u);
        covered += size;
      }
      EXPECT_EQ(covered, total);
    }
  }
}

TEST(Chunks, deliver_the_exception_of_a_worker_to_the_caller) {
  auto fail_in_the_middle = [](Bytes begin, Bytes size) {
    if (begin + size > MiB(50)) throw std::out_of_range("middle");
  };

  EXPECT_THROW(for_each_chunk(MiB(100), fail_in_the_middle), std::out_of_range);
}

TEST(Chunks, are_all_moved_by_the_threads_that_the_system_grants) {
  for (int granted : {0, 1}) {
    FaultySyscalls faults;
    faults.refuse_threads_from(granted + 1);
    std::mutex mutex;
    std::set<std::thread::id> movers;
    Bytes moved = 0;

    for_each_chunk(MiB(80), 4, [&](Bytes, Bytes size) {
      std::lock_guard lock(mutex);
      movers.insert(std::this_thread::get_id());
      moved += size;
    });

    EXPECT_EQ(moved, MiB(80));
    EXPECT_LE(movers.size(), static_cast<std::size_t>(granted) + 1);
    EXPECT_EQ(faults.threads_asked_for(), granted + 1);
  }
}

}  // namespace
}  // namespace sluice::bytes
