#include "bytes/load/read_plan.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <vector>

namespace sluice::bytes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ReadLimits kLimits{.chunk = MiB(1), .join_gap = 4096};

WantedRange range(Bytes offset, Bytes size) {
  return {.offset = offset, .size = size};
}

std::vector<std::pair<Bytes, Bytes>> extents(const std::vector<Read>& reads) {
  std::vector<std::pair<Bytes, Bytes>> extents;
  for (const Read& read : reads) extents.emplace_back(read.offset, read.size);
  return extents;
}

TEST(ReadPlan, reads_nothing_where_nothing_is_wanted) {
  EXPECT_THAT(plan_reads({}, kLimits), IsEmpty());
}

TEST(ReadPlan, joins_neighbours_and_gaps_below_the_limit_into_one_read) {
  const std::vector<WantedRange> ranges{range(100, 50), range(150, 10), range(4256, 4)};

  EXPECT_THAT(extents(plan_reads(ranges, kLimits)), ElementsAre(std::pair(100, 4160)));
}

TEST(ReadPlan, leaves_gaps_above_the_limit_unread) {
  const std::vector<WantedRange> ranges{range(100, 50), range(4247, 10)};

  EXPECT_THAT(extents(plan_reads(ranges, kLimits)), ElementsAre(std::pair(100, 50), std::pair(4247, 10)));
}

TEST(ReadPlan, cuts_long_runs_at_multiples_of_64_KiB_of_the_file) {
  const std::vector<WantedRange> ranges{range(KiB(64) + 8, MiB(2))};

  EXPECT_THAT(extents(plan_reads(ranges, kLimits)),
              ElementsAre(std::pair(KiB(64) + 8, MiB(1) - 8), std::pair(KiB(64) + MiB(1), MiB(1)),
                          std::pair(KiB(64) + MiB(2), 8)));
}

TEST(ReadPlan, cuts_large_runs_at_the_first_and_last_edge_too) {
  const std::vector<WantedRange> ranges{range(8, MiB(1))};
  const ReadLimits limits{.chunk = MiB(2), .edge = 512};

  EXPECT_THAT(extents(plan_reads(ranges, limits)),
              ElementsAre(std::pair(8, 504), std::pair(512, MiB(1) - 512), std::pair(MiB(1), 8)));
}

TEST(ReadPlan, makes_fewer_than_256_reads_of_a_contiguous_gibibyte_in_small_tensors) {
  std::vector<WantedRange> ranges;
  for (Bytes offset = 1000; offset < GiB(1); offset += 10'000) ranges.push_back(range(offset, 10'000));

  EXPECT_LT(plan_reads(ranges, {.chunk = kDefaultChunk, .edge = 512}).size(), 256u);
}

std::vector<WantedRange> any_ranges() {
  std::vector<WantedRange> ranges;
  Bytes offset = 0;
  const auto sizes = *rc::gen::container<std::vector<std::pair<Bytes, Bytes>>>(
      rc::gen::pair(rc::gen::element<Bytes>(0, 0, 1, 511, 4096, 4097, 100'000),
                    rc::gen::element<Bytes>(1, 7, 4096, 65'536, 300'001, 5'000'000)));
  for (const auto& [gap, size] : sizes) {
    ranges.push_back(range(offset + gap, size));
    offset += gap + size;
  }
  return ranges;
}

TEST(ReadPlan, serves_every_byte_of_every_range_once_with_ascending_reads_of_bounded_size) {
  const bool holds = rc::check([] {
    const std::vector<WantedRange> ranges = any_ranges();
    const ReadLimits limits{.chunk = kCut * *rc::gen::inRange<Bytes>(1, 40),
                            .edge = *rc::gen::element<Bytes>(1, 512, 4096)};

    const std::vector<Read> reads = plan_reads(ranges, limits);

    std::vector<Bytes> served(ranges.size());
    Bytes end = 0;
    for (const Read& read : reads) {
      RC_ASSERT(read.size > 0u && read.offset >= end && read.first < read.last);
      RC_ASSERT((read.end() + kCut - 1) / kCut * kCut - read.offset / kCut * kCut <= limits.chunk);
      for (std::size_t i = read.first; i < read.last; ++i) {
        const Segment segment = segment_of(read, ranges, i);
        RC_ASSERT(segment.size > 0u && segment.skip == served[i]);
        RC_ASSERT(read.offset + segment.in_read == ranges[i].offset + segment.skip);
        served[i] += segment.size;
      }
      end = read.end();
    }
    for (std::size_t i = 0; i < ranges.size(); ++i) RC_ASSERT(served[i] == ranges[i].size);
  });

  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace sluice::bytes
