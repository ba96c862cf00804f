#pragma once
// Takes a shard's source tensors as they are read, quantizes what is to be, and hands the bytes of the shard
// to the disk in the order of its table.  Computes with all workers while the next pieces are read and the
// last ones written.  One thread, that of load().

#include "weights/quantize/disk_writer.h"
#include "weights/quantize/quantized_layout.h"
#include "weights/quantize/whole_units.h"
#include "weights/quantize/workers.h"

#include <sluice/load.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::weights {

// Largest magnitudes of tensors that are too large to be held until theirs is known, found by reading them
// before; by index of QuantizedLayout::sources.
using KnownLargest = std::map<std::size_t, float>;

class QuantizingSink final : public TensorSink {
 public:
  struct Shared {
    const Checkpoint& checkpoint;
    const QuantizedLayout& layout;  // index of sources: index of the plan's targets
    const KnownLargest& known;
    std::span<std::byte> held;  // room for a tensor before it is quantized
    Workers& workers;
    DiskWriter& writer;  // has begun the shard's file, its header is written
  };
  explicit QuantizingSink(const Shared& shared) : shared_(shared) {}

  std::span<std::byte> destination(std::size_t) override { return {}; }
  void take(std::size_t target, Bytes offset, std::span<const std::byte> bytes) override;
  void complete(std::size_t target) override;

  // After the last tensor: what tail_of() lists.
  void write_tails();

 private:
  // The tensor that is being taken.
  struct Current {
    const QuantizedSource& source;
    bool holds = false;         // put together first
    float largest = 0;          // fp8
    std::size_t values = 0;     // seen
    std::vector<float> absmax;  // nf4
  };

  void begin(std::size_t target);
  void take_units(std::span<const std::byte> values);
  void encode_f8(std::span<const std::byte> values);
  void encode_blocks(std::span<const std::byte> values);
  void finish_f8();
  void finish_nf4();

  Shared shared_;
  std::optional<Current> current_;
  WholeUnits units_;
  std::string wide_tail_, narrow_tail_;  // of F32, of bytes
};

// Finds largest magnitudes; only of tensors of the layout that are quantized.
class LargestSink final : public TensorSink {
 public:
  LargestSink(const Checkpoint& checkpoint, const QuantizedLayout& layout, Workers& workers)
      : checkpoint_(checkpoint), layout_(layout), workers_(workers) {}

  std::span<std::byte> destination(std::size_t) override { return {}; }
  void take(std::size_t target, Bytes offset, std::span<const std::byte> bytes) override;

  const KnownLargest& largest() const { return largest_; }

 private:
  const Checkpoint& checkpoint_;
  const QuantizedLayout& layout_;
  Workers& workers_;
  WholeUnits units_;
  std::size_t values_ = 0;
  KnownLargest largest_;
};

}  // namespace sluice::weights
