#include <sluice/read_options.h>

#include "support/throws_error.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using test::ThrowsError;
using ::testing::HasSubstr;

TEST(ReadBackend, has_a_name_that_is_read_back) {
  for (std::string_view name : {"auto", "mmap", "pread", "direct", "uring"}) {
    EXPECT_EQ(to_string(parse_read_backend(name)), name);
  }
  EXPECT_EQ(parse_read_backend("auto"), ReadBackend::automatic);
  EXPECT_EQ(parse_read_backend("uring"), ReadBackend::uring);
}

TEST(ReadBackend, that_is_unknown_is_refused_with_the_names_there_are) {
  EXPECT_THAT([] { parse_read_backend("Direct"); },
              ThrowsError(ErrorKind::usage, HasSubstr("'Direct' is no read backend"),
                          HasSubstr("auto, mmap, pread, direct, uring")));
}

TEST(CachePolicy, has_a_name_that_is_read_back) {
  for (std::string_view name : {"auto", "keep", "drop", "prefetch"}) {
    EXPECT_EQ(to_string(parse_cache_policy(name)), name);
  }
  EXPECT_EQ(parse_cache_policy("drop"), CachePolicy::drop);
}

TEST(CachePolicy, that_is_unknown_is_refused_with_the_names_there_are) {
  EXPECT_THAT([] { parse_cache_policy(""); },
              ThrowsError(ErrorKind::usage, HasSubstr("'' is no cache policy"),
                          HasSubstr("auto, keep, drop, prefetch")));
}

}  // namespace
}  // namespace sluice
