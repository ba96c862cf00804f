#pragma once
// Between reads: Python's signals are looked at, so that Ctrl-C ends a load, and the caller's function is
// told how far it is.  What either raises ends the load and reaches the caller as it is.  For use without the
// GIL by the thread that called load().

#include <sluice/progress.h>

#include <nanobind/nanobind.h>

#include <chrono>

namespace sluice::python {

class PythonProgress final : public Progress {
 public:
  // `tell`: None, or called with MiB done and in total; it must outlive this object.
  explicit PythonProgress(nanobind::handle tell) : tell_(tell) {}

  void at(std::string_view phase, std::int64_t done, std::int64_t total, std::string_view unit) override;

 private:
  nanobind::handle tell_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace sluice::python
