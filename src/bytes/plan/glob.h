#pragma once
// Globs with memory: what each "*" of a pattern stood for, so that a new name can be made of it.  Pure; the
// time is at most the product of both lengths.  glob_matches itself is public: <sluice/transforms.h>.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::bytes {

// What the stars of a glob matched, in order; views of the name.
using Captures = std::vector<std::string_view>;

// nullopt if the name does not match.  Where several ways lead to a match, each "*" from the left takes as
// little as it can, and the last one the rest.
std::optional<Captures> glob_capture(std::string_view glob, std::string_view name);

std::size_t count_stars(std::string_view glob);

// `pattern` with its first "*" replaced by the first capture, and so on.  It has at most as many stars as
// there are captures; all else in it, also "?", stands for itself.
std::string fill_stars(std::string_view pattern, const Captures& captures);

}  // namespace sluice::bytes
