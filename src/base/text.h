#pragma once
// Text of messages: names that come from files are shown so that no byte of them can disturb a terminal or a
// log.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

// The text with control characters and bytes that are not UTF-8 as \xNN.
std::string printable(std::string_view text);

// 'name' printable and in single quotes: at most 200 bytes, then "…".
std::string in_quotes(std::string_view name);

// Valid JSON with DEL and the control characters from U+0080 to U+009F, which its strings may hold as they
// are, as \uNNNN: safe on a terminal.
std::string escape_controls(std::string_view json);

// "a, b, c and 5 more": the first `at_most` of them.
std::string list_first(std::span<const std::string> items, std::size_t at_most,
                       std::string_view separator = ", ");

}  // namespace sluice
