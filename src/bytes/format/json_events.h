#pragma once
// Strict JSON as a stream of events: nothing is built, so a hostile text costs no more than its length.
// Refused: what is not JSON, not UTF-8, nested deeper than kMaxDepth, or holds a NUL byte.

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::bytes {

inline constexpr int kMaxDepth = 32;

class JsonEvents {
 public:
  enum class Nest { object, array };

  virtual ~JsonEvents() = default;
  virtual void begin(Nest nest) = 0;
  virtual void end() = 0;                         // of the innermost object or array
  virtual void key(std::string& name) = 0;        // may be moved from
  virtual void text(std::string& value) = 0;      // a string; may be moved from
  virtual void integer(std::uint64_t value) = 0;  // plain digits that fit 64 bits
  virtual void other(
      std::string_view token) = 0;  // null, true, false, a number with sign, fraction, exponent or too large
};

// Error(corrupt_file) "<where>: … at byte N"; errors that the handler throws pass through.
// `where`: what the message begins with, e.g. "a.safetensors: header".
void parse_json(std::string_view json, std::string_view where, JsonEvents& handler);

// The same for who only wants to know whether the text is good.
void check_json(std::string_view json, std::string_view where);

// Whether the text is a JSON object or array that parse_json takes: metadata may be either, or any other
// text.
bool is_json_container(std::string_view text);

}  // namespace sluice::bytes
