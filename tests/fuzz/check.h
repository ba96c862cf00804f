#pragma once
// What must hold of every answer of a parser to any bytes; a fuzzer reports the input that breaks it.

#include "base/text.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace sluice::fuzz {

inline void require(bool holds, std::string_view what) {
  if (holds) return;
  fmt::print(stderr, "does not hold: {}\n", what);
  std::abort();
}

// A refusal says what is wrong with the file, shortly, with a remedy, and in characters that disturb nobody.
inline void check_refusal(const Error& error, std::string_view file) {
  const std::string_view message = error.what();
  require(error.kind() == ErrorKind::bad_input || error.kind() == ErrorKind::corrupt_file,
          "the kind is the file's fault");
  require(message.starts_with(file), "the message begins with the file");
  require(message.size() < 4096, "the message is short");
  require(printable(message) == message, "the message is printable");
  require(!error.hint().empty(), "there is a remedy");
}

}  // namespace sluice::fuzz
