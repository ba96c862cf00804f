#pragma once
// A tensor as a line of a table on a terminal.

#include <sluice/checkpoint.h>

#include <span>
#include <string>
#include <string_view>

namespace sluice::cli {

// Dtype, shape, size and name; nothing of the name that a terminal would take as a command.
std::string tensor_line(Dtype dtype, std::span<const std::int64_t> shape, Bytes size, std::string_view name);

}  // namespace sluice::cli
