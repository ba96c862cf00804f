#pragma once
// Flags that every command has.

#include <CLI/CLI.hpp>

namespace sluice::cli {

struct CommonFlags {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
};

void add_common(CLI::App& command, CommonFlags& flags);

}  // namespace sluice::cli
