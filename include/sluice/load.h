#pragma once
// Loading a checkpoint, tensor by tensor, in bounded memory.  Three steps:
//
//   Checkpoint checkpoint = Checkpoint::open("model.safetensors");
//   LoadPlan plan = plan_load(checkpoint, {.filter = {.include = {"transformer.*"}}});   // table only
//   LoadReport report = load(plan, sink, {.cache = CachePolicy::drop});                  // bytes
//
// The plan is made from names, shapes and dtypes alone: what the result will be, how many bytes are read and
// how much memory that takes is known, and can be refused, before the first byte of data is read.

#include <sluice/checkpoint.h>
#include <sluice/progress.h>
#include <sluice/read_options.h>
#include <sluice/transforms.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// Which tensors of the checkpoint are wanted; names as in the file, before any transform.
struct TensorFilter {
  std::vector<std::string> include;  // globs (see glob_matches); empty: everything
  std::vector<std::string> exclude;
  bool skip_vision = false;        // names that begin with "model.visual.", "model.vision" or "visual."
  bool skip_mtp = false;           // "mtp." at the start of the name or of one of its parts
  bool skip_input_scales = false;  // names that end in ".input_scale"
};
// As a filter of tensors and for Checkpoint::open, which then opens only the shards that are needed.
bool wanted_by(const TensorFilter& filter, std::string_view name);

// One of `world` equal processes, each of which loads its share.
struct Rank {
  unsigned index = 0;
  unsigned world = 1;
  // Tensors with "experts.N." in their name (as whole parts of it) stay with the rank that owns N: contiguous
  // ranges, the first ranks one expert more where they do not divide.  Experts are counted per prefix, in the
  // checkpoint as it was opened.
  bool expert_parallel = false;
  struct Slice {
    std::string glob;
    std::size_t dim = 0;  // 0: rows, 1: columns; its extent must be a multiple of `world`
  };
  std::vector<Slice> slices;  // matching tensors are cut to this rank's part; only that part is read
};

// A tensor that the caller reads later, by itself.
struct DeferredTensor {
  std::filesystem::path path;
  TensorInfo tensor;  // under its new name; offset counts from the start of that file
};

struct LoadRequest {
  TensorFilter filter;
  Rank rank;
  Transforms transforms;  // after filter and rank
  // Asked for every tensor that is kept whole and unchanged in its bytes (renamed at most) by this rank, under
  // its new name; true: it is not loaded but listed in LoadPlan::deferred().
  std::function<bool(const TensorInfo&)> defer;
};

// One tensor of the result.
struct TargetTensor {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::int64_t> shape;
  Bytes size = 0;
};

class LoadPlan {
 public:
  const Checkpoint& checkpoint() const;
  // In the order in which they are completed while reading.
  const std::vector<TargetTensor>& targets() const;
  const std::vector<DeferredTensor>& deferred() const;
  Bytes target_bytes() const;  // all targets together
  Bytes read_bytes() const;    // of the files, without what is skipped or deferred
  // The most memory that targets need at one time while they are put together (transposed, concatenated into
  // a sink without memory, quantized); 0 if all can go straight through.
  Bytes staging_bytes(bool sink_has_memory) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
  friend struct LoadPlanAccess;
};

// Refuses (Error usage, mismatch) filters and rules that match nothing, rules that do not apply to what they
// match, two targets of one name, cuts into more than 8 Mi pieces; all problems in one message.
LoadPlan plan_load(const Checkpoint& checkpoint, const LoadRequest& request = {});

// Where the tensors go.  Called from the thread that called load().
class TensorSink {
 public:
  virtual ~TensorSink() = default;

  // The target's memory, exactly target.size bytes, valid until load() returns: the bytes are read straight
  // into it, by several threads.  Empty: the target is taken in pieces.  Asked once for each target, before
  // anything is read; index into LoadPlan::targets().
  virtual std::span<std::byte> destination(std::size_t target) = 0;

  // True if the destinations have never been written to, so that their pages are to be touched first.
  virtual bool destinations_are_fresh() const { return false; }

  // The next bytes of a target without destination: pieces of one target come in order, targets one after
  // the other in the plan's order.  The bytes are valid during the call.
  virtual void take(std::size_t target, Bytes offset, std::span<const std::byte> bytes) = 0;

  // Every byte of the target has been delivered.
  virtual void complete(std::size_t) {}
};

struct ShardLoadReport {
  std::filesystem::path path;
  std::string backend;  // what was used: "pread", "pread uncached", "direct", "mmap", "uring", "uring direct"
  std::string reason;   // why
  unsigned threads = 0;
  Bytes bytes = 0;             // delivered
  std::uint64_t requests = 0;  // read calls
  double touch_seconds = 0;    // on first touches of fresh destinations: the average of the readers
  double cached_before = 0;    // share of the file in the page cache, 0 to 1
};

struct LoadReport {
  double seconds = 0;
  double touch_seconds =
      0;            // of it, spent on first touches of fresh destinations: the average of the readers
  Bytes bytes = 0;  // delivered from files
  std::uint64_t requests = 0;  // read calls
  std::uint64_t page_faults = 0;
  double cpu_seconds = 0;
  Bytes pool_bytes = 0;  // buffers that were used
  std::vector<ShardLoadReport> shards;
  std::vector<std::string> warnings;  // one for each kind of refusal by the system that was worked around
};

// Reads the plan's bytes into the sink.  Throws the first error of any reader or of the sink, after every
// thread has ended: Error(io / corrupt_file) names file, tensor and offset; Error(interrupted) if cancelled.
// What was delivered until then is undefined; calling again is safe.
LoadReport load(const LoadPlan& plan, TensorSink& sink, const ReadOptions& options = {},
                Progress* progress = nullptr, const CancelToken* cancel = nullptr);

}  // namespace sluice
