#pragma once
// A flag whose value is one of a few words.

#include <sluice/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::cli {

template <typename T>
using Word = std::pair<std::string_view, T>;

// Error(usage) that lists the words.
template <typename T, std::size_t N>
T parse_word(const char* flag, const std::string& text, const std::array<Word<T>, N>& words) {
  std::vector<std::string_view> known;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    known.push_back(word);
  }
  throw Error(ErrorKind::usage, fmt::format("{} '{}' is unknown", flag, text),
              fmt::format("use one of {}", fmt::join(known, ", ")));
}

}  // namespace sluice::cli
