#include "bytes/read/prefetch.h"

#include "support/resident_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace sluice::bytes {
namespace {

using test::ResidentFile;

// What the system was asked for arrives when it does: waits until a share is there, at most half a minute.
bool comes_in(const ResidentFile& file, Bytes begin, Bytes end) {
  for (int attempt = 0; attempt < 3000; ++attempt) {
    if (file.share(begin, end) == 1) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(Prefetch, brings_in_the_first_bytes_and_no_more_than_its_distance) {
  ResidentFile file(kPrefetchAhead + MiB(32));
  const File open = File::open(file.path());

  Prefetch prefetch(open, 0, file.size());
  EXPECT_EQ(file.share(), 0);
  prefetch.about_to_read(0);

  EXPECT_TRUE(comes_in(file, 0, kPrefetchAhead));
  EXPECT_EQ(file.share(kPrefetchAhead + MiB(1), file.size()), 0);
}

TEST(Prefetch, keeps_its_distance_from_the_reader) {
  ResidentFile file(kPrefetchAhead + MiB(32));
  const File open = File::open(file.path());
  Prefetch prefetch(open, 0, file.size());

  prefetch.about_to_read(0);
  prefetch.about_to_read(MiB(4));  // too little to ask for
  prefetch.about_to_read(MiB(20));

  EXPECT_TRUE(comes_in(file, 0, kPrefetchAhead + MiB(20)));
  EXPECT_EQ(file.share(kPrefetchAhead + MiB(21), file.size()), 0);
}

TEST(Prefetch, asks_for_nothing_outside_of_what_is_wanted) {
  ResidentFile file(MiB(24));
  const File open = File::open(file.path());
  Prefetch prefetch(open, MiB(8), MiB(16));

  prefetch.about_to_read(MiB(8));
  prefetch.about_to_read(MiB(15));

  EXPECT_TRUE(comes_in(file, MiB(8), MiB(16)));
  EXPECT_EQ(file.share(0, MiB(8)), 0);
  EXPECT_EQ(file.share(MiB(17), MiB(24)), 0);
}

}  // namespace
}  // namespace sluice::bytes
