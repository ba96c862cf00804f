#include "bytes/chunks.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <stdexcept>

namespace sluice::bytes {
namespace {

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

}  // namespace
}  // namespace sluice::bytes
