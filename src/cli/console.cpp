#include "cli/console.h"

#include "base/log.h"
#include "cli/json_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <cstdio>

namespace sluice::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kLongestSilence = std::chrono::seconds(5);
constexpr int kBarWidth = 30;

void print(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

// For errors of parts that know no remedy of their own.
std::string_view usual_remedy(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "see sluice --help";
    case ErrorKind::bad_input:
    case ErrorKind::corrupt_file:
    case ErrorKind::mismatch:
      return "check that this is the file you mean, or fetch it again";
    case ErrorKind::does_not_fit:
      return "free memory, or ask for less";
    case ErrorKind::io:
      return "check the path, and the permissions and free space there";
    case ErrorKind::non_finite:
      return "the weights or the given values may be damaged; --compute-dtype f32 rules out overflow";
    case ErrorKind::interrupted:
      return "run the same command again";
    case ErrorKind::internal:
      break;
  }
  return "this is a bug: report it with the command line and the output of sluice --version";
}

std::string hint_of(const Error& error) {
  return error.hint().empty() ? std::string(usual_remedy(error.kind())) : error.hint();
}

}  // namespace

ProgressDisplay::ProgressDisplay(const CommonFlags& flags)
    : quiet_(flags.quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressDisplay::~ProgressDisplay() {
  end_line();
}

void ProgressDisplay::end_line() {
  if (open_line_) print("\n");
  open_line_ = false;
}

void ProgressDisplay::at(std::string_view phase, std::int64_t done, std::int64_t total,
                         std::string_view unit) {
  if (quiet_) return;
  const auto now = Clock::now();
  if (phase != phase_ || done < done_) {  // also the same once more
    end_line();
    phase_ = phase;
    phase_start_ = now;
    shown_ = {};
  }
  done_ = done;
  const bool every = unit == "steps" || done == total;
  const bool due = now - shown_ > (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kLongestSilence));
  if (!every && !due) return;
  shown_ = now;
  draw(phase, done, total, unit);
}

void ProgressDisplay::draw(std::string_view phase, std::int64_t done, std::int64_t total,
                           std::string_view unit) {
  const std::chrono::duration<double> elapsed = Clock::now() - phase_start_;
  std::string figures = fmt::format("{}/{} {} {:.1f} s", done, total, unit, elapsed.count());
  constexpr double kLeastForRate = 0.1;  // seconds; below, it says more about the clock
  if (unit == "MiB" && done > 0 && elapsed.count() >= kLeastForRate)
    figures += fmt::format(" {:.0f} MiB/s", static_cast<double>(done) / elapsed.count());
  if (!terminal_) {
    print(fmt::format("{:<13}{}\n", phase, figures));
    return;
  }
  const auto filled = static_cast<std::size_t>(total > 0 ? kBarWidth * done / total : 0);
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  print(fmt::format("\r{:<13}[{}] {}\033[K", phase, bar, figures));
  open_line_ = true;
  if (done == total) end_line();
}

void show_messages(const CommonFlags& flags) {
  set_log_sink([flags](LogLevel level, const std::string& line) {
    if (level == LogLevel::warning) print(fmt::format("sluice: warning: {}\n", line));
    if (level == LogLevel::info && flags.verbose) print(fmt::format("sluice: {}\n", line));
  });
}

nlohmann::json as_json(const Error& error) {
  return {{"kind", std::string(error_kind_info(error.kind()).name)},
          {"message", error.what()},
          {"hint", hint_of(error)}};
}

int show_error(const Error& error, const CommonFlags& flags) {
  if (flags.json) {
    print_json({{"error", as_json(error)}});
  } else {
    print(fmt::format("sluice: {}\n  try: {}\n", error.what(), hint_of(error)));
  }
  return error_kind_info(error.kind()).exit_code;
}

}  // namespace sluice::cli
