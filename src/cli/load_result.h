#pragma once
// What `sluice load` did, or with --dry-run would do, as text and as JSON.

#include <sluice/load.h>

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace sluice::cli {

struct MemoryFigures {
  Bytes needed = 0, available = 0;
};

struct LoadResult {
  struct Run {
    double seconds = 0;  // all of it, taking memory and writing a file included
    LoadReport report;
  };
  std::vector<Run> runs;        // one with each --repeat; figures are those of the last
  double prefault_seconds = 0;  // spent on touching memory before the first run
  bool huge_pages = false;      // of the dictionary's memory
  Bytes peak_anonymous = 0;
  double cached_before = 0, cached_after = 0;  // share of the files
  MemoryFigures memory;
};

// What was chosen for a shard, and why: for -v.
std::string choice_line(const ShardLoadReport& shard);

std::string as_text(const LoadResult& result);
nlohmann::json as_json(const LoadResult& result);

// The tensors that would be there.
std::string as_text(const LoadPlan& plan, const MemoryFigures& memory);
nlohmann::json as_json(const LoadPlan& plan, const MemoryFigures& memory);

}  // namespace sluice::cli
