#pragma once
// EXPECT_THAT([&] { … }, ThrowsError(ErrorKind::corrupt_file, HasSubstr("…"))), and the same with a matcher
// of the hint.

#include <sluice/error.h>

#include <gmock/gmock.h>

#include <ostream>
#include <string>

namespace sluice {

inline void PrintTo(ErrorKind kind, std::ostream* out) {
  *out << error_kind_info(kind).name;
}

namespace test {

inline auto ThrowsError(ErrorKind kind, ::testing::Matcher<std::string> message,
                        ::testing::Matcher<std::string> hint = ::testing::_) {
  return ::testing::Throws<Error>(
      ::testing::AllOf(::testing::Property("kind", &Error::kind, kind),
                       ::testing::ResultOf(
                           "message", [](const Error& error) { return std::string(error.what()); }, message),
                       ::testing::Property("hint", &Error::hint, hint)));
}

}  // namespace test
}  // namespace sluice
