#pragma once
// Quantizes one checkpoint into shards, in memory that does not depend on its size: reads, quantizes and
// writes at the same time, a shard after the other.

#include "weights/quantize/disk_writer.h"
#include "weights/quantize/partial_folder.h"
#include "weights/quantize/quantized_layout.h"
#include "weights/quantize/workers.h"

#include <sluice/load.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace sluice::weights {

// Which part of the memory each station of the pipeline gets.
struct QuantizeMemory {
  Bytes pool = 0;  // what is read and not yet taken
  Bytes held = 0;  // a tensor that waits for its largest magnitude
  WriteBlocks write;
  Bytes total() const { return pool + held + write.memory(); }
};
// `largest`: bytes of the largest tensor that is held if there is room; `taken`: of the limit, what the
// process holds already.  Error(does_not_fit) for a limit that no split serves.
QuantizeMemory split_memory(Bytes limit, Bytes largest, Bytes taken = 0);

// One checkpoint of the input and what becomes of it.
struct QuantizeTask {
  Checkpoint checkpoint;
  LoadPlan plan;                 // of the whole checkpoint
  QuantizedLayout layout;        // its sources are the plan's targets
  std::filesystem::path folder;  // of the shards, within the output; empty: the output itself
  ShardNames names;
  std::map<std::string, std::string> metadata;  // of every shard

  // Of the largest fp8 tensor, which is best held.
  Bytes largest_held() const;
};
// `quantized`: names of the tensors that are.
QuantizeTask make_task(const Checkpoint& checkpoint, const std::set<std::string, std::less<>>& quantized,
                       QuantFormat format, Bytes shard_size, const ShardNames& names);

struct QuantizeRun {
  const ReadOptions& read;  // its pool is not used
  const QuantizeMemory& memory;
  Progress* progress = nullptr;
  const CancelToken* cancel = nullptr;
};

// Counts over all tasks of a run.
struct QuantizeCount {
  Bytes read = 0, written = 0;        // by this run
  Bytes source_done = 0, source = 0;  // for progress: bytes of the sources, of all runs
  std::size_t shards = 0, taken_up = 0;
  std::string backend;  // how the last shard was read
};

class CheckpointQuantizer {
 public:
  explicit CheckpointQuantizer(const QuantizeRun& run);
  ~CheckpointQuantizer();

  // Adds the task's shards, and its index, to the folder; shards that are there already are left out.
  // Errors of load(), non_finite naming file, tensor and element, io when the disk is full.
  void quantize(const QuantizeTask& task, PartialFolder& folder, QuantizeCount& count);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::weights
