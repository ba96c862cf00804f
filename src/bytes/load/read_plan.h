#pragma once
// Turns "these ranges of a file" into the fewest large reads.  Knows offsets and sizes only: no file, no
// thread, no address.

#include "bytes/plan/load_plan_state.h"

#include <span>
#include <vector>

namespace sluice::bytes {

// Reads are cut at multiples of this in the file, so that every read but the ends of a run begins and ends
// where a direct read may: no device or page in use asks for more.
inline constexpr Bytes kCut = KiB(64);

struct ReadLimits {
  Bytes chunk = 0;  // a multiple of kCut; a read that is widened to multiples of kCut has at most this size
  // Gaps up to this are read along and thrown away: the system reads whole pages anyway.
  Bytes join_gap = 4096;
  // Where direct reads may begin and end (a power of two).  Above 1, large runs are cut at its first and last
  // multiple too: all but the tiny reads at their ends can then go straight to their place.
  Bytes edge = 1;
};

// Contiguous in the file.  Serves the ranges [first, last); those at its ends perhaps only in part.
struct Read {
  Bytes offset = 0;
  Bytes size = 0;
  std::size_t first = 0, last = 0;

  Bytes end() const { return offset + size; }
};

// `ranges`: of one file, sorted by offset, none empty, no two overlapping.  Reads ascend and do not overlap.
std::vector<Read> plan_reads(std::span<const WantedRange> ranges, const ReadLimits& limits);

// What a read holds of a range.
struct Segment {
  std::size_t range = 0;
  Bytes skip = 0;     // bytes of the range before it
  Bytes in_read = 0;  // bytes of the read before it
  Bytes size = 0;
};
Segment segment_of(const Read& read, std::span<const WantedRange> ranges, std::size_t range);

}  // namespace sluice::bytes
