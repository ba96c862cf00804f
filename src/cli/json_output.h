#pragma once
// One JSON object as a command's result.

#include <nlohmann/json_fwd.hpp>

namespace sluice::cli {

// On stdout, one line.  Text that is not UTF-8 (names of files need not be) becomes U+FFFD, and no control
// character reaches a terminal.
void print_json(const nlohmann::json& object);

}  // namespace sluice::cli
