#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

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

// Appends the printable form of `text` up to the first character boundary at or behind `at_most`; returns how
// much of it was taken.
std::size_t append_printable(std::string& shown, std::string_view text, std::size_t at_most) {
  std::size_t at = 0;
  while (at < text.size() && at < at_most) {
    auto byte = static_cast<unsigned char>(text[at]);
    std::size_t length = byte < 0x80 ? 1 : sequence_length(text.substr(at));
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(shown), "\\x{:02x}", byte);
      ++at;
    } else {
      shown += text.substr(at, length);
      at += length;
    }
  }
  return at;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  append_printable(shown, text, text.size());
  return shown;
}

std::string in_quotes(std::string_view name) {
  std::string shown = "'";
  if (append_printable(shown, name, kMostShown) < name.size()) shown += "…";
  return shown + "'";
}

std::string escape_controls(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto byte = static_cast<unsigned char>(json[i]);
    const auto next = static_cast<unsigned char>(i + 1 < json.size() ? json[i + 1] : 0);
    if (byte == 0x7f) {
      safe += "\\u007f";
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      safe += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      safe += json[i];
    }
  }
  return safe;
}

std::string list_first(std::span<const std::string> items, std::size_t at_most, std::string_view separator) {
  std::size_t shown = std::min(items.size(), at_most);
  std::string list = fmt::format("{}", fmt::join(items.first(shown), separator));
  if (shown < items.size())
    list += fmt::format("{}and {} more", separator == ", " ? " " : separator, items.size() - shown);
  return list;
}

}  // namespace sluice
