#pragma once
// Metadata of files as text for a terminal.

#include <string>
#include <string_view>

namespace sluice::cli {

// "  key: value" and the end of the line, both printable; of a long value its beginning and its size.
std::string metadata_line(std::string_view key, std::string_view value);

}  // namespace sluice::cli
