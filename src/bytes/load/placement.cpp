#include "bytes/load/placement.h"

#include <cstring>

namespace sluice::bytes {
namespace {

bool suits(const Read& read, const std::byte* address, const ReadAlignment& alignment) {
  return read.offset % alignment.offset == 0 && read.size % alignment.offset == 0 &&
         reinterpret_cast<std::uintptr_t>(address) % alignment.memory == 0;
}

}  // namespace

RangeAddresses range_addresses(const PlanState& plan, std::span<const WantedRange> ranges,
                               std::span<const std::span<std::byte>> destinations) {
  RangeAddresses addresses(ranges.size(), nullptr);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const WantedRange& range = ranges[i];
    const Target& target = plan.targets[range.target];
    if (destinations[range.target].empty() || target.quantized) continue;
    if (auto place = place_in_target(target.parts[range.part], target.tensor))
      addresses[i] = destinations[range.target].data() + *place + range.part_offset;
  }
  return addresses;
}

Route route_of(const Read& read, std::span<const WantedRange> ranges, const RangeAddresses& addresses,
               const RouteLimits& limits) {
  bool one_span = true;
  Bytes reached = 0;
  const std::byte* next = nullptr;
  for (std::size_t i = read.first; i < read.last; ++i) {
    if (addresses[i] == nullptr) return Route::pooled;
    const Segment segment = segment_of(read, ranges, i);
    if (segment.in_read != reached) return Route::pooled;  // bytes that nobody wants lie between
    const std::byte* address = addresses[i] + segment.skip;
    if (next != nullptr && address != next) one_span = false;
    reached = segment.in_read + segment.size;
    next = address + segment.size;
  }
  const std::byte* start = addresses[read.first] + segment_of(read, ranges, read.first).skip;
  if (one_span && suits(read, start, limits.alignment)) return Route::one_span;
  return limits.scatter ? Route::scattered : Route::pooled;
}

std::vector<std::span<std::byte>> spans_of(const Read& read, std::span<const WantedRange> ranges,
                                           const RangeAddresses& addresses) {
  std::vector<std::span<std::byte>> spans;
  for (std::size_t i = read.first; i < read.last; ++i) {
    const Segment segment = segment_of(read, ranges, i);
    std::byte* address = addresses[i] + segment.skip;
    if (!spans.empty() && spans.back().data() + spans.back().size() == address) {
      spans.back() = {spans.back().data(), spans.back().size() + segment.size};
    } else {
      spans.emplace_back(address, segment.size);
    }
  }
  return spans;
}

bool copy_placed(const Read& read, std::span<const WantedRange> ranges, const RangeAddresses& addresses,
                 std::span<const std::byte> bytes) {
  bool all = true;
  for (std::size_t i = read.first; i < read.last; ++i) {
    if (addresses[i] == nullptr) {
      all = false;
      continue;
    }
    const Segment segment = segment_of(read, ranges, i);
    std::memcpy(addresses[i] + segment.skip, bytes.data() + segment.in_read, segment.size);
  }
  return all;
}

}  // namespace sluice::bytes
