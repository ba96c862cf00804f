#pragma once
// The subcommands.  Each adds its flags to a CLI::App and gives back what to do once they are parsed.

#include "cli/flags.h"

#include <sluice/sluice.h>

#include <CLI/CLI.hpp>

#include <functional>

namespace sluice::cli {

struct Context {
  CommonFlags& flags;
  Progress& progress;
  const CancelToken& cancel;
};

using Action = std::function<void(const Context&)>;

Action add_generate(CLI::App& app);
Action add_encode(CLI::App& app);
Action add_plan(CLI::App& app);
Action add_inspect(CLI::App& app);

}  // namespace sluice::cli
