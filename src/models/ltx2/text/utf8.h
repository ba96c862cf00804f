#pragma once
// UTF-8 as the tokenizer needs it: checking, walking by code points, and the white space of the two rules it
// follows. Pure functions; all offsets and lengths are bytes.

#include <cstddef>
#include <optional>
#include <string_view>

namespace sluice::ltx2 {

// Offset of the first byte that is not part of well-formed UTF-8 (Unicode 15, table 3-7: no overlong forms,
// no surrogates, nothing above U+10FFFF).
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 0;  // 1 to 4
};

// The code point at the front or the back of valid, non-empty UTF-8.
CodePoint first_code_point(std::string_view text);
CodePoint last_code_point(std::string_view text);

// Length in bytes of the code point that begins with `lead`, in valid UTF-8.
constexpr std::size_t code_point_length(char lead) {
  auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

// Unicode's property White_Space: what `lstrip` and `rstrip` of an added token swallow.
bool is_white_space(char32_t code_point);

// `text` without the white space at both ends that Python's str.strip() takes away: White_Space and U+001C to
// U+001F.
std::string_view strip(std::string_view text);

}  // namespace sluice::ltx2
