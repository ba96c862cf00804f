#pragma once
// The commands of `sluice`.  Each adds its flags to a CLI::App and gives back what to do once they are
// parsed.

#include "cli/program.h"

namespace sluice::cli {

Action add_inspect(CLI::App& app);
Action add_load(CLI::App& app);
Action add_verify(CLI::App& app);
Action add_bench_load(CLI::App& app);

// A command of the program that computes: its flags are left to that one.
Action add_handed_over(CLI::App& app);

// Ends this program by becoming the one that computes, with the same arguments.  Error(io) if it is not
// there, Error(interrupted) if this one was asked to stop.
[[noreturn]] void hand_over(const Context& context);

}  // namespace sluice::cli
