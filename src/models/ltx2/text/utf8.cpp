#include "models/ltx2/text/utf8.h"

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

constexpr bool is_continuation(unsigned char byte) {
  return (byte & 0xc0) == 0x80;
}

// Length of the well-formed sequence at the front of `text`; 0 if there is none.
std::size_t valid_length(std::string_view text) {
  unsigned char lead = byte_at(text, 0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  std::size_t length = code_point_length(text[0]);
  if (text.size() < length) return 0;
  unsigned char second = byte_at(text, 1);
  if (lead == 0xe0 && second < 0xa0) return 0;  // overlong
  if (lead == 0xed && second > 0x9f) return 0;  // surrogate
  if (lead == 0xf0 && second < 0x90) return 0;  // overlong
  if (lead == 0xf4 && second > 0x8f) return 0;  // above U+10FFFF
  bool continued = std::ranges::all_of(text.substr(1, length - 1), [](char c) { return is_continuation(c); });
  return continued ? length : 0;
}

bool is_python_space(char32_t c) {
  return is_white_space(c) || (c >= 0x1c && c <= 0x1f);
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = valid_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

CodePoint first_code_point(std::string_view text) {
  std::size_t length = code_point_length(text[0]);
  if (length == 1) return {byte_at(text, 0), 1};
  char32_t value = byte_at(text, 0) & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) value = (value << 6) | (byte_at(text, i) & 0x3fu);
  return {value, length};
}

CodePoint last_code_point(std::string_view text) {
  std::size_t start = text.size() - 1;
  while (is_continuation(byte_at(text, start))) --start;
  return first_code_point(text.substr(start));
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

std::string_view strip(std::string_view text) {
  while (!text.empty()) {
    CodePoint first = first_code_point(text);
    if (!is_python_space(first.value)) break;
    text.remove_prefix(first.length);
  }
  while (!text.empty()) {
    CodePoint last = last_code_point(text);
    if (!is_python_space(last.value)) break;
    text.remove_suffix(last.length);
  }
  return text;
}

}  // namespace sluice::ltx2
