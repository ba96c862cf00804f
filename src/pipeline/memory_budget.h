#pragma once
// How much memory a run may cause in all: the only place that knows limits.

#include <sluice/units.h>

#include <optional>
#include <string>

namespace sluice::pipeline {

struct MemoryBudget {
  // For everything at once: what the process holds already, what it takes, and pages of files that it brings
  // into the cache.
  Bytes total = 0;
  std::string source;  // "asked for", "what this machine and its control group have left"
};

// `asked`: --memory-limit.  A limit above what there is counts as what there is.
MemoryBudget memory_budget(std::optional<Bytes> asked);
MemoryBudget memory_budget(std::optional<Bytes> asked, Bytes held, Bytes available);

}  // namespace sluice::pipeline
