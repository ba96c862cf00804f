#pragma once
// Text of messages: names that come from files are shown so that no byte of them can disturb a terminal or a
// log.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

// 'name' in single quotes; control characters and bytes that are not UTF-8 as \xNN, at most 200 bytes, then
// "…".
std::string in_quotes(std::string_view name);

// "a, b, c and 5 more": the first `at_most` of them.
std::string list_first(std::span<const std::string> items, std::size_t at_most,
                       std::string_view separator = ", ");

}  // namespace sluice
