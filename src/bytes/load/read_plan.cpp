#include "bytes/load/read_plan.h"

#include <algorithm>

namespace sluice::bytes {
namespace {

Bytes end_of(const WantedRange& range) {
  return range.offset + range.size;
}

// Below this the two more reads cost more than copying the run.
constexpr Bytes kEdgesFrom = MiB(1);

// Where a read that begins at `begin` has to end.
Bytes next_cut(Bytes begin, Bytes run_end, Bytes chunk, Bytes edge) {
  const Bytes first_edge = (begin + edge - 1) / edge * edge;
  if (first_edge != begin) return first_edge;
  const Bytes end = begin / kCut * kCut + chunk;
  if (end < run_end) return end;
  const Bytes last_edge = run_end / edge * edge;
  return last_edge > begin ? last_edge : run_end;
}

// Reads of one run [ranges[first], ranges[last - 1]] without gaps that matter.
void cut_run(std::span<const WantedRange> ranges, std::size_t first, std::size_t last,
             const ReadLimits& limits, std::vector<Read>& reads) {
  const Bytes run_end = end_of(ranges[last - 1]);
  const Bytes edge = run_end - ranges[first].offset < kEdgesFrom ? 1 : limits.edge;
  std::size_t range = first;
  for (Bytes begin = ranges[first].offset; begin < run_end;) {
    const Bytes end = next_cut(begin, run_end, limits.chunk, edge);
    Read read{begin, end - begin, range, range};
    while (read.last < last && ranges[read.last].offset < end) ++read.last;
    // A read may end inside the gap behind its last range, or begin inside one: neither end is wanted.
    read.size = std::min(end, end_of(ranges[read.last - 1])) - begin;
    reads.push_back(read);
    range = end_of(ranges[read.last - 1]) > end ? read.last - 1 : read.last;
    begin = range < last ? std::max(end, ranges[range].offset) : run_end;
  }
}

}  // namespace

std::vector<Read> plan_reads(std::span<const WantedRange> ranges, const ReadLimits& limits) {
  std::vector<Read> reads;
  for (std::size_t first = 0; first < ranges.size();) {
    std::size_t last = first + 1;
    while (last < ranges.size() && ranges[last].offset - end_of(ranges[last - 1]) <= limits.join_gap) ++last;
    cut_run(ranges, first, last, limits, reads);
    first = last;
  }
  return reads;
}

Segment segment_of(const Read& read, std::span<const WantedRange> ranges, std::size_t range) {
  const WantedRange& wanted = ranges[range];
  const Bytes begin = std::max(read.offset, wanted.offset);
  const Bytes end = std::min(read.end(), end_of(wanted));
  return {range, begin - wanted.offset, begin - read.offset, end - begin};
}

}  // namespace sluice::bytes
