#include "weights/quantize/quantize_checkpoint.h"

#include "base/log.h"
#include "bytes/format/writer.h"
#include "bytes/load/match_targets.h"
#include "weights/quantize/encode.h"
#include "weights/quantize/quantizing_sink.h"

#include <sluice/error.h>
#include <sluice/slab.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>
#include <thread>
#include <utility>

namespace sluice::weights {
namespace {

namespace fs = std::filesystem;

// Of the disk alone two reads are enough; more wait for a tensor of 128 MiB to be quantized and keep the disk
// busy meanwhile.
constexpr Bytes kUsualPool = MiB(96), kSmallPool = MiB(16);
constexpr WriteBlocks kUsualBlocks = {.block = MiB(8), .blocks = 4},
                      kSmallBlocks = {.block = MiB(2), .blocks = 3};

// The load of one shard as a stretch of the whole.
class StretchOfProgress final : public Progress {
 public:
  StretchOfProgress(Progress* whole, std::string_view phase, Bytes before, Bytes all)
      : whole_(whole), phase_(phase), before_(before), all_(all) {}

  void at(std::string_view, std::int64_t done, std::int64_t, std::string_view unit) override {
    if (whole_ == nullptr) return;
    const auto all = static_cast<std::int64_t>((all_ + MiB(1) - 1) >> 20);
    whole_->at(phase_, std::min(static_cast<std::int64_t>(before_ >> 20) + done, all), all, unit);
  }

 private:
  Progress* whole_;
  std::string_view phase_;
  Bytes before_, all_;
};

// Of the plan, only the targets that are wanted; their numbers stay.
template <typename Wanted>
LoadPlan part_of(const LoadPlan& plan, Wanted wanted) {
  bytes::MatchedTargets matched(plan.targets().size());
  for (std::size_t i = 0; i < matched.size(); ++i) {
    if (wanted(i)) matched[i] = i;
  }
  return bytes::without_ignored(plan, matched);
}

std::string index_of(const QuantizeTask& task) {
  nlohmann::json index = {{"metadata", {{"total_size", task.layout.data_bytes()}}},
                          {"weight_map", nlohmann::json::object()}};
  for (const QuantizedShard& shard : task.layout.shards) {
    for (const bytes::TensorSpec& tensor : shard.tensors) index["weight_map"][tensor.name] = shard.name;
  }
  return index.dump(2) + "\n";
}

}  // namespace

QuantizeMemory split_memory(Bytes limit, Bytes largest, Bytes taken) {
  QuantizeMemory memory{.pool = kUsualPool, .write = kUsualBlocks};
  if (limit < taken + 2 * memory.total()) {
    memory.pool = kSmallPool;
    memory.write = kSmallBlocks;
  }
  const Bytes least = taken + memory.total();
  if (limit < least) {
    throw Error(
        ErrorKind::does_not_fit,
        fmt::format("quantizing needs {} of memory, {} are there for it", format_bytes(least),
                    format_bytes(limit)),
        fmt::format("free memory, or give --memory-limit {}MiB or more", (least + MiB(1) - 1) / MiB(1)));
  }
  memory.held = std::min(largest, limit - least);
  return memory;
}

Bytes QuantizeTask::largest_held() const {
  Bytes largest = 0;
  for (const QuantizedSource& source : layout.sources) {
    if (source.format == QuantFormat::fp8) largest = std::max(largest, source.tensor.size);
  }
  return largest;
}

QuantizeTask make_task(const Checkpoint& checkpoint, const std::set<std::string, std::less<>>& quantized,
                       QuantFormat format, Bytes shard_size, const ShardNames& names) {
  LoadPlan plan = plan_load(checkpoint);
  std::vector<QuantizedSource> sources;
  for (const TargetTensor& target : plan.targets()) {
    sources.push_back({.tensor = target});
    if (quantized.contains(target.name)) sources.back().format = format;
  }
  return {.checkpoint = checkpoint,
          .plan = std::move(plan),
          .layout = lay_out_quantized(std::move(sources), shard_size, names),
          .names = names};
}

struct CheckpointQuantizer::State {
  explicit State(const QuantizeRun& asked)
      : run(asked),
        read(asked.read),
        workers(std::max(1u, std::thread::hardware_concurrency())),
        writer(asked.memory.write) {
    read.pool = asked.memory.pool;
    // A load uses two buffers more than it has readers, of which it has four at most: large ones fill the
    // pool.
    read.chunk = std::max(kLeastChunk, read.pool / 6);
    if (asked.memory.held > 0) held.reserve(asked.memory.held);
  }

  // Of tensors of the shard for which there is no room.
  KnownLargest look_for_largest(const QuantizeTask& task, const QuantizedShard& shard, QuantizeCount& count) {
    const auto too_large = [&](std::size_t i) {
      const QuantizedSource& source = task.layout.sources[i];
      return i >= shard.first && i < shard.last && source.format == QuantFormat::fp8 &&
             source.tensor.size > run.memory.held;
    };
    const LoadPlan plan = part_of(task.plan, too_large);
    if (plan.read_bytes() == 0) return {};
    LargestSink sink(task.checkpoint, task.layout, workers);
    StretchOfProgress progress(run.progress, "look", 0, plan.read_bytes());
    count.read += load(plan, sink, read, &progress, run.cancel).bytes;
    return sink.largest();
  }

  FinishedFile write_shard(const QuantizeTask& task, const QuantizedShard& shard, const fs::path& path,
                           QuantizeCount& count) {
    const KnownLargest known = look_for_largest(task, shard, count);
    const std::string header = bytes::safetensors_header(path, shard.tensors, task.metadata);
    writer.begin(path);
    writer.append(std::as_bytes(std::span(header)));
    QuantizingSink sink({.checkpoint = task.checkpoint,
                         .layout = task.layout,
                         .known = known,
                         .held = held.bytes(),
                         .workers = workers,
                         .writer = writer});
    StretchOfProgress progress(run.progress, "quantize", count.source_done, count.source);
    const auto in_shard = [&](std::size_t i) { return i >= shard.first && i < shard.last; };
    const LoadReport report = load(part_of(task.plan, in_shard), sink, read, &progress, run.cancel);
    sink.write_tails();
    const WrittenFile written = writer.finish();
    count.read += report.bytes;
    count.written += written.size;
    tell_way(report, count);
    return {(task.folder / shard.name).string(), written.size, written.checksum};
  }

  // Once for each way that is taken.
  static void tell_way(const LoadReport& report, QuantizeCount& count) {
    for (const ShardLoadReport& shard : report.shards) {
      if (shard.backend == count.backend) continue;
      count.backend = shard.backend;
      log_info(fmt::format("{}: {} by {} threads: {}", shard.path.string(), shard.backend, shard.threads,
                           shard.reason));
    }
  }

  const QuantizeRun run;
  ReadOptions read;
  Workers workers;
  DiskWriter writer;
  Slab held;
};

CheckpointQuantizer::CheckpointQuantizer(const QuantizeRun& run) : state_(std::make_unique<State>(run)) {}
CheckpointQuantizer::~CheckpointQuantizer() = default;

void CheckpointQuantizer::quantize(const QuantizeTask& task, PartialFolder& folder, QuantizeCount& count) {
  fs::create_directories(folder.path() / task.folder);
  for (const QuantizedShard& shard : task.layout.shards) {
    if (folder.finished((task.folder / shard.name).string()) != nullptr) {
      ++count.taken_up;
    } else {
      folder.add(state_->write_shard(task, shard, folder.path() / task.folder / shard.name, count));
    }
    ++count.shards;
    count.source_done += shard.source_bytes;
  }
  if (task.layout.shards.size() > 1 || task.names.always_numbered) {
    write_text(folder.path() / task.folder / (task.names.stem + ".safetensors.index.json"), index_of(task));
  }
}

}  // namespace sluice::weights
