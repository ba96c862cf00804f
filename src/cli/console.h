#pragma once
// What the program shows: progress on stderr (a bar on a terminal, lines elsewhere), messages, errors.

#include "cli/flags.h"

#include <sluice/error.h>
#include <sluice/progress.h>

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <string>

namespace sluice::cli {

// A bar that is redrawn on a terminal; elsewhere a line a step, and at least every 5 seconds one in finer
// work.
class ProgressDisplay final : public Progress {
 public:
  explicit ProgressDisplay(const CommonFlags& flags);
  ~ProgressDisplay() override;

  void at(std::string_view phase, std::int64_t done, std::int64_t total, std::string_view unit) override;

 private:
  void draw(std::string_view phase, std::int64_t done, std::int64_t total, std::string_view unit);
  void end_line();

  bool quiet_;
  bool terminal_;
  bool open_line_ = false;
  std::string phase_;
  std::int64_t done_ = 0;
  std::chrono::steady_clock::time_point phase_start_;
  std::chrono::steady_clock::time_point shown_;
};

// Sends the library's warnings, and at -v its choices, to stderr.
void show_messages(const CommonFlags& flags);

// {"kind", "message", "hint"}
nlohmann::json as_json(const Error& error);

// Prints the error as the flags ask and returns its exit code.
int show_error(const Error& error, const CommonFlags& flags);

}  // namespace sluice::cli
