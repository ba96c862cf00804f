#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice {
namespace {

constexpr std::size_t kMostShown = 200;

// Length of the well-formed UTF-8 sequence of two to four bytes at the front of `text`; 0 if there is none.
std::size_t sequence_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (byte(0) == 0xc2 && byte(1) < 0xa0) return 0;  // C1 control characters
  return length;
}

}  // namespace

std::string in_quotes(std::string_view name) {
  std::string shown = "'";
  std::size_t at = 0;
  while (at < name.size() && at < kMostShown) {
    auto byte = static_cast<unsigned char>(name[at]);
    std::size_t length = byte < 0x80 ? 1 : sequence_length(name.substr(at));
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      shown += fmt::format("\\x{:02x}", byte);
      ++at;
    } else {
      shown += name.substr(at, length);
      at += length;
    }
  }
  if (at < name.size()) shown += "…";
  return shown + "'";
}

std::string list_first(std::span<const std::string> items, std::size_t at_most, std::string_view separator) {
  std::size_t shown = std::min(items.size(), at_most);
  std::string list = fmt::format("{}", fmt::join(items.first(shown), separator));
  if (shown < items.size())
    list += fmt::format("{}and {} more", separator == ", " ? " " : separator, items.size() - shown);
  return list;
}

}  // namespace sluice
