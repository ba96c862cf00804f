#pragma once
// The flag somebody probably meant.

#include <CLI/CLI.hpp>

#include <string>

namespace sluice::cli {

// The flag or subcommand of `command` with the fewest letters changed from `word`; empty if none is close.
std::string nearest_flag(const std::string& word, const CLI::App& command);

std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace sluice::cli
