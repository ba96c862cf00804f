#pragma once
// What CLI11 found wrong with a command line, in this program's words: flag, value and what would be right.

#include <sluice/error.h>

#include <CLI/CLI.hpp>

namespace sluice::cli {

Error usage_error(const CLI::ParseError& error, const CLI::App& app);

}  // namespace sluice::cli
