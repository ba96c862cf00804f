#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sluice {
namespace {

using ::testing::ElementsAre;

TEST(Log, is_silent_without_a_sink) {
  set_log_sink({});

  log_warning("heard by nobody");
}

TEST(Log, hands_lines_with_their_level_to_the_sink) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, const std::string& line) {
    lines.push_back((level == LogLevel::warning ? "warning: " : "info: ") + line);
  });

  log_info("reads with pread");
  log_warning("odd");
  set_log_sink({});

  EXPECT_THAT(lines, ElementsAre("info: reads with pread", "warning: odd"));
}

TEST(Log, hands_over_one_line_at_a_time) {
  std::size_t count = 0;  // not atomic: the log keeps callers apart
  set_log_sink([&](LogLevel, const std::string&) { ++count; });

  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int k = 0; k < 1000; ++k) log_info("line");
      });
    }
  }
  set_log_sink({});

  EXPECT_EQ(count, 4000u);
}

}  // namespace
}  // namespace sluice
