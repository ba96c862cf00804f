#pragma once
// Where the bytes of each read go, decided before reading: straight to their place, to many places with one
// call, or through a buffer of the pool.

#include "bytes/load/delivery.h"
#include "bytes/load/read_plan.h"
#include "bytes/read/shard_reader.h"

#include <cstddef>
#include <span>
#include <vector>

namespace sluice::bytes {

// The memory of a range whose bytes need no change; nullptr otherwise.
using RangeAddresses = std::vector<std::byte*>;
RangeAddresses range_addresses(const PlanState& plan, std::span<const WantedRange> ranges,
                               std::span<const std::span<std::byte>> destinations);

enum class Route {
  one_span,   // its place is one run of memory
  scattered,  // one call fills several runs
  pooled,     // through a buffer
};

struct RouteLimits {
  ReadAlignment alignment;  // of offset, size and address, for a read that goes to one span
  bool scatter = true;      // the way of reading fills many spans, of any address and size, with one call
};
Route route_of(const Read& read, std::span<const WantedRange> ranges, const RangeAddresses& addresses,
               const RouteLimits& limits);

// The memory of a read that is not pooled, one span a run, in order.
std::vector<std::span<std::byte>> spans_of(const Read& read, std::span<const WantedRange> ranges,
                                           const RangeAddresses& addresses);

// Copies what has an address out of a read's buffer.  True if that was all of it.
bool copy_placed(const Read& read, std::span<const WantedRange> ranges, const RangeAddresses& addresses,
                 std::span<const std::byte> bytes);

}  // namespace sluice::bytes
