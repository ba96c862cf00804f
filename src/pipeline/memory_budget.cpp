#include "pipeline/memory_budget.h"

#include "base/system_memory.h"

#include <sluice/memory.h>

#include <fmt/format.h>

namespace sluice::pipeline {

MemoryBudget memory_budget(std::optional<Bytes> asked, Bytes held, Bytes available) {
  const Bytes there = held + available;
  if (!asked) return {there, "what this machine and its control groups have left"};
  if (*asked <= there) return {*asked, "asked for"};
  return {there, fmt::format("{} were asked for, but this machine and its control groups have no more left",
                             format_bytes(*asked))};
}

MemoryBudget memory_budget(std::optional<Bytes> asked) {
  return memory_budget(asked, anonymous_memory(), available_memory());
}

}  // namespace sluice::pipeline
