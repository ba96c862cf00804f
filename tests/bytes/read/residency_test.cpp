#include "bytes/read/residency.h"

#include "bytes/read/page_cache.h"
#include "support/resident_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::bytes {
namespace {

using test::ResidentFile;
using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::Le;

TEST(Residency, tells_page_by_page_what_is_in_memory) {
  ResidentFile file(MiB(4) + 100);
  file.bring_in(MiB(1), MiB(2));
  file.bring_in(MiB(4), MiB(4) + 100);
  const File open = File::open(file.path());

  const auto pages = Residency(open, ResidencyMeans::pages).pages(0, file.size());

  EXPECT_EQ(pages, file.pages());
  EXPECT_EQ(pages.size(), MiB(4) / ResidentFile::page() + 1);
  EXPECT_TRUE(pages.back());
}

TEST(Residency, begins_where_it_is_asked_to) {
  ResidentFile file(MiB(4));
  file.bring_in(MiB(2), MiB(3));
  const File open = File::open(file.path());
  Residency residency(open, ResidencyMeans::pages);

  EXPECT_THAT(residency.pages(MiB(2), MiB(3)), Each(true));
  EXPECT_THAT(residency.pages(MiB(3), MiB(4)), Each(false));
  EXPECT_TRUE(residency.pages(MiB(3), MiB(3)).empty());
}

TEST(Residency, brings_nothing_into_memory_by_asking) {
  ResidentFile file(MiB(4));
  const File open = File::open(file.path());

  Residency(open).pages(0, file.size());

  EXPECT_EQ(file.share(), 0);
}

TEST(Residency, by_samples_tells_the_strides_that_are_in_memory) {
  ResidentFile file(MiB(8));
  file.bring_in(MiB(2), MiB(5));
  const File open = File::open(file.path());
  Residency residency(open, ResidencyMeans::samples);

  EXPECT_THAT(residency.pages(0, MiB(2)), Each(false));
  EXPECT_THAT(residency.pages(MiB(2), MiB(5)), Each(true));
  EXPECT_THAT(residency.pages(MiB(5), MiB(8)), Each(false));
  EXPECT_EQ(residency.means(), ResidencyMeans::samples);
}

TEST(Residency, by_samples_brings_in_no_more_than_one_page_a_stride) {
  ResidentFile file(MiB(8));
  const File open = File::open(file.path());

  Residency(open, ResidencyMeans::samples, MiB(1)).pages(0, MiB(8));

  const auto pages = file.pages();
  EXPECT_LE(std::count(pages.begin(), pages.end(), true), 8);
}

TEST(Residency, by_samples_does_not_take_what_it_brought_in_for_the_whole) {
  ResidentFile file(MiB(16));
  const File open = File::open(file.path());

  std::vector<bool> pages;
  for (int again = 0; again < 4; ++again) pages = Residency(open, ResidencyMeans::samples).pages(0, MiB(16));

  // By chance a sample may meet one before it: in 16 strides of 256 pages, hardly ever in five.
  EXPECT_LE(std::count(pages.begin(), pages.end(), true), 4 * 256);
}

TEST(Residency, knows_nothing_where_it_has_no_means) {
  ResidentFile file(MiB(1));
  file.bring_in(0, MiB(1));
  const File open = File::open(file.path());

  EXPECT_THAT(Residency(open, ResidencyMeans::nothing).pages(0, MiB(1)), Each(false));
}

TEST(CachedBytes, are_those_of_the_file_in_memory) {
  ResidentFile file(MiB(8));
  EXPECT_EQ(cached_bytes(file.path()), 0u);

  file.bring_in(MiB(2), MiB(5));
  EXPECT_EQ(cached_bytes(file.path()), MiB(3));

  file.bring_in(0, MiB(8));
  EXPECT_EQ(cached_bytes(file.path()), MiB(8));
}

TEST(CachedBytes, never_exceed_the_file) {
  ResidentFile file(100);
  file.bring_in(0, 100);

  EXPECT_EQ(cached_bytes(file.path()), 100u);
}

}  // namespace
}  // namespace sluice::bytes
