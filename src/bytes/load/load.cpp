#include <sluice/load.h>

#include "base/process_usage.h"
#include "bytes/format/checkpoint_state.h"
#include "bytes/format/unchanged.h"
#include "bytes/load/deliverer.h"
#include "bytes/load/load_pool.h"
#include "bytes/load/load_warnings.h"
#include "bytes/load/shard_load.h"

namespace sluice {
namespace {

// The ranges of one shard out of the plan's, which are sorted by shard.
std::span<const bytes::WantedRange> ranges_of(const bytes::PlanState& plan, std::size_t& first) {
  std::size_t last = first;
  while (last < plan.ranges.size() && plan.ranges[last].shard == plan.ranges[first].shard) ++last;
  return std::span(plan.ranges).subspan(std::exchange(first, last), last - first);
}

void tell(Progress* progress, Bytes done, Bytes total) {
  if (progress == nullptr) return;
  const Bytes whole = (total + MiB(1) - 1) >> 20;  // the last, begun MiB is done with the last byte
  progress->at("load", static_cast<std::int64_t>(done == total ? whole : done >> 20),
               static_cast<std::int64_t>(whole), "MiB");
}

}  // namespace

LoadReport load(const LoadPlan& plan, TensorSink& sink, const ReadOptions& options, Progress* progress,
                const CancelToken* cancel) {
  const bytes::PlanState& state = LoadPlanAccess::state(plan);
  const ProcessUsage before = process_usage();
  LoadReport report;
  bytes::LoadWarnings warnings;
  bytes::LoadPool pool(options);
  bytes::Deliverer deliverer(state, sink);
  deliverer.complete_empty();

  Bytes done = 0;
  tell(progress, done, state.read_bytes);
  for (std::size_t first = 0; first < state.ranges.size();) {
    const std::size_t shard = state.ranges[first].shard;
    bytes::ShardLoad work{state, shard, ranges_of(state, first), deliverer, sink.destinations_are_fresh()};
    report.shards.push_back(bytes::load_shard(work, options, pool, warnings, cancel, [&](Bytes bytes) {
      done += bytes;
      tell(progress, done, state.read_bytes);
    }));
    report.bytes += report.shards.back().bytes;
    report.requests += report.shards.back().requests;
    report.touch_seconds += report.shards.back().touch_seconds;
  }
  bytes::require_unchanged(CheckpointAccess::state(state.checkpoint));

  const UsedBetween used = process_usage() - before;
  report.seconds = used.seconds;
  report.cpu_seconds = used.cpu_seconds;
  report.page_faults = used.page_faults;
  report.pool_bytes = pool.used();
  report.warnings = warnings.lines();
  return report;
}

}  // namespace sluice
