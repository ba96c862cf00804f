#pragma once
// Flags about memory: where weights are, and how much may be taken.

#include <sluice/sluice.h>

#include <CLI/CLI.hpp>

#include <string>

namespace sluice::compute {

class MemoryFlags {
 public:
  void add_to(CLI::App& command);
  // Parses into the request's fields.  Error(usage) names flag and value.
  void apply(Request& request) const;

 private:
  std::string stage_from_ = "auto", decode_ = "auto", memory_limit_, attention_budget_, resident_blocks_;
};

}  // namespace sluice::compute
