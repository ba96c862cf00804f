#pragma once
// The consumer's side of a load: takes reads in order and sees that every target's bytes reach the sink, cast
// and put together where the plan says so.  One thread.

#include "bytes/load/delivery.h"
#include "bytes/load/placement.h"
#include "bytes/load/read_plan.h"

#include <sluice/load.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace sluice::bytes {

class Deliverer {
 public:
  // Asks the sink for the destinations of all targets.  Error(internal) for one of another size.
  Deliverer(const PlanState& plan, TensorSink& sink);
  ~Deliverer();

  // By target; empty for those that the sink takes.
  std::span<const std::span<std::byte>> destinations() const { return destinations_; }

  // Targets without a byte are complete before anything is read.
  void complete_empty();

  // `ranges` of the read's shard.  What has an address is in its place already, the rest is in `bytes`, the
  // read's own; empty if there is no rest.
  void deliver(const Read& read, std::span<const WantedRange> ranges, const RangeAddresses& addresses,
               std::span<const std::byte> bytes);

 private:
  struct Staging;

  void take(const WantedRange& range, Bytes skip, std::span<const std::byte> bytes);
  void take_elements(const WantedRange& range, Bytes part_offset, std::span<const std::byte> elements);
  void take_cast(std::size_t target, Bytes element, Dtype from, std::span<const std::byte> elements);
  void finish(std::size_t target);
  void finish_quantized(std::size_t target);
  void hand_over(std::size_t target, std::span<const std::byte> whole);
  Staging& staging(std::size_t target);

  const PlanState& plan_;
  TensorSink& sink_;
  std::vector<std::span<std::byte>> destinations_;
  std::vector<Delivery> deliveries_;
  std::vector<Bytes> remaining_;                    // bytes of files that each target still waits for
  std::vector<std::unique_ptr<Staging>> stagings_;  // by target
  // The first bytes of an element whose rest comes with the next read: ranges may begin anywhere in a file.
  std::array<std::byte, 16> split_element_;
  std::size_t split_bytes_ = 0;
  std::vector<std::byte> cast_buffer_;
};

}  // namespace sluice::bytes
