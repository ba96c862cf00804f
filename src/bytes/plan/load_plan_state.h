#pragma once
// What a LoadPlan holds, for the files of this layer: for every target the boxes of source tensors that it is
// made of, and all wanted ranges of all shards in the order in which they are read.

#include <sluice/load.h>

namespace sluice {

namespace bytes {

struct Interval {
  std::int64_t begin = 0, extent = 0;
};

// A box of a source tensor and its place in the target.  Target index of a source index (both relative to
// their box): target[to_dim[d]] = at[to_dim[d]] + source[d].  Of elements smaller than a byte, every
// contiguous run of the box begins and ends on whole bytes, in the source as in the target, and dimensions
// keep their order.
struct Part {
  TensorInfo source;
  std::vector<Interval> box;        // by dimension of the source
  std::vector<std::size_t> to_dim;  // by dimension of the source: the dimension of the target
  std::vector<std::int64_t> at;     // by dimension of the target: where the box begins
  std::vector<Dtype> casts;         // on the way to the target's dtype, each rounds: F32 -> [BF16] -> F32

  std::int64_t elements() const;
};

struct Target {
  TargetTensor tensor;
  std::vector<Part> parts;
  // The value tensor of a quantized pair: the scale is the target after it.  Neither has memory of the sink
  // until the whole tensor is there.
  bool quantized = false;
  // What the parts are put together in: the dtype of `tensor`, or of the values before they are quantized.
  Dtype assembled = Dtype::F32;
  // One part of the target's dtype that fills the target in the target's own order: bytes go straight.
  bool straight = false;
  // As straight, but of another dtype: elements are cast one by one, in order.
  bool cast_only = false;
};

// A contiguous range of a shard that belongs to one part.
struct WantedRange {
  std::size_t shard = 0;
  Bytes offset = 0;  // in the file
  Bytes size = 0;
  std::size_t target = 0;
  std::size_t part = 0;
  Bytes part_offset = 0;  // in the box, counted in its own row-major order
};

}  // namespace bytes

struct LoadPlan::State {
  explicit State(Checkpoint from) : checkpoint(std::move(from)) {}

  Checkpoint checkpoint;
  std::vector<bytes::Target> targets;        // in the order of their last byte
  std::vector<TargetTensor> target_tensors;  // the same, as the public view
  std::vector<DeferredTensor> deferred;
  std::vector<bytes::WantedRange> ranges;  // sorted by shard and offset; none is empty; no two overlap
  Bytes target_bytes = 0, read_bytes = 0;
};

struct LoadPlanAccess {
  using State = LoadPlan::State;
  static const State& state(const LoadPlan& plan) { return *plan.state_; }
  static LoadPlan make(std::shared_ptr<const State> state) {
    LoadPlan plan;
    plan.state_ = std::move(state);
    return plan;
  }
};

namespace bytes {
using PlanState = LoadPlanAccess::State;
}

}  // namespace sluice
