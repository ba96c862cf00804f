#pragma once
// A program made of commands: parses its flags, shows messages, progress and errors, gives the exit code.

#include "cli/flags.h"

#include <sluice/error.h>
#include <sluice/progress.h>

#include <CLI/CLI.hpp>

#include <functional>
#include <span>

namespace sluice::cli {

struct Context {
  const CommonFlags& flags;
  Progress& progress;
  const CancelToken& cancel;
  char** arguments;  // the program's, all of them
};

// What a command does once its flags are parsed.
using Action = std::function<void(const Context&)>;

// Thrown by an action whose JSON result, printed already, tells the error: what is left is the exit code.
struct ErrorInResult {
  ErrorKind kind;
};

struct Command {
  const char* name;  // "load", or "bench load": in a group
  const char* description;
  Action (*build)(CLI::App&);  // adds the command's flags
};

// Once in a process: installs handlers of signals, calls `prepare` (its errors are shown like a command's).
// A first SIGINT, SIGTERM or SIGHUP sets Context::cancel, a second one ends the process.
int run_program(
    std::span<const Command> commands, int argc, char** argv, const std::function<void()>& prepare = [] {});

}  // namespace sluice::cli
