#include "cli/load_result.h"

#include "base/text.h"
#include "cli/figures.h"
#include "cli/tensor_line.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluice::cli {
namespace {

using nlohmann::json;

// "pread by 4 threads"
std::string way_of(const ShardLoadReport& shard) {
  return fmt::format("{} by {}", shard.backend, counted(shard.threads, "thread"));
}

std::string shard_line(const ShardLoadReport& shard) {
  return fmt::format("{}: {}, {} in {}, {:.0f} % cached before\n", printable(shard.path.filename().string()),
                     way_of(shard), format_bytes(shard.bytes), counted(shard.requests, "request"),
                     100 * shard.cached_before);
}

json shard_object(const ShardLoadReport& shard) {
  return {{"file", shard.path.string()},
          {"backend", shard.backend},
          {"reason", shard.reason},
          {"threads", shard.threads},
          {"bytes", shard.bytes},
          {"requests", shard.requests},
          {"touch_seconds", shard.touch_seconds},
          {"cached_before", shard.cached_before}};
}

json run_object(const LoadResult::Run& run) {
  return {{"seconds", run.seconds},
          {"gib_per_second", gib_per_second(run.report.bytes, run.seconds)},
          {"touch_seconds", run.report.touch_seconds},
          {"page_faults", run.report.page_faults},
          {"cpu_seconds", run.report.cpu_seconds}};
}

json memory_object(const MemoryFigures& memory) {
  return {{"needed", memory.needed}, {"available", memory.available}};
}

std::string run_line(const LoadResult::Run& run) {
  return fmt::format("{} in {:.3f} s: {:.2f} GiB/s, {:.2f} s of CPU, {:.3f} s of touching new memory\n",
                     format_bytes(run.report.bytes), run.seconds,
                     gib_per_second(run.report.bytes, run.seconds), run.report.cpu_seconds,
                     run.report.touch_seconds);
}

}  // namespace

std::string choice_line(const ShardLoadReport& shard) {
  return fmt::format("{}: {}: {}", printable(shard.path.string()), way_of(shard), shard.reason);
}

std::string as_text(const LoadResult& result) {
  std::string text;
  for (const LoadResult::Run& run : result.runs) text += run_line(run);
  const LoadReport& last = result.runs.back().report;
  if (result.prefault_seconds > 0)
    text += fmt::format("before that, {:.3f} s of touching memory\n", result.prefault_seconds);
  for (const ShardLoadReport& shard : last.shards) text += shard_line(shard);
  text += fmt::format("page cache: {:.1f} % of the files before, {:.1f} % after\n",
                      100 * result.cached_before, 100 * result.cached_after);
  text += fmt::format("memory: {} needed, {} available, peak {}, read buffers {}\n",
                      format_bytes(result.memory.needed), format_bytes(result.memory.available),
                      format_bytes(result.peak_anonymous), format_bytes(last.pool_bytes));
  return text;
}

json as_json(const LoadResult& result) {
  const LoadResult::Run& last = result.runs.back();
  json object = run_object(last);
  object["bytes"] = last.report.bytes;
  object["requests"] = last.report.requests;
  object["prefault_seconds"] = result.prefault_seconds;
  object["pool_bytes"] = last.report.pool_bytes;
  object["huge_pages"] = result.huge_pages;
  object["peak_anonymous"] = result.peak_anonymous;
  object["cached_before"] = result.cached_before;
  object["cached_after"] = result.cached_after;
  object["memory"] = memory_object(result.memory);
  object["shards"] = json::array();
  for (const ShardLoadReport& shard : last.report.shards) object["shards"].push_back(shard_object(shard));
  object["warnings"] = last.report.warnings;
  object["runs"] = json::array();
  for (const LoadResult::Run& run : result.runs) object["runs"].push_back(run_object(run));
  return object;
}

std::string as_text(const LoadPlan& plan, const MemoryFigures& memory) {
  std::string text;
  for (const TargetTensor& target : plan.targets())
    text += tensor_line(target.dtype, target.shape, target.size, target.name);
  return text + fmt::format("{}, {}; reads {}; needs {} of memory, {} available\n",
                            counted(plan.targets().size(), "tensor"), format_bytes(plan.target_bytes()),
                            format_bytes(plan.read_bytes()), format_bytes(memory.needed),
                            format_bytes(memory.available));
}

json as_json(const LoadPlan& plan, const MemoryFigures& memory) {
  json object = {{"dry_run", true},
                 {"bytes", plan.read_bytes()},
                 {"target_bytes", plan.target_bytes()},
                 {"memory", memory_object(memory)},
                 {"shards", json::array()},
                 {"tensors", json::array()}};
  for (const Shard& shard : plan.checkpoint().shards())
    object["shards"].push_back({{"file", shard.path.string()}, {"file_bytes", shard.file_size}});
  for (const TargetTensor& target : plan.targets()) {
    object["tensors"].push_back({{"name", target.name},
                                 {"dtype", std::string(dtype_name(target.dtype))},
                                 {"shape", target.shape},
                                 {"bytes", target.size}});
  }
  return object;
}

}  // namespace sluice::cli
