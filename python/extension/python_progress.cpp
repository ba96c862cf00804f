#include "python_progress.h"

namespace sluice::python {
namespace {

// Another thread of Python may keep the GIL for 5 ms, so it is not asked for at every read.
constexpr auto kPeriod = std::chrono::milliseconds(50);

}  // namespace

void PythonProgress::at(std::string_view, std::int64_t done, std::int64_t total, std::string_view) {
  const auto now = std::chrono::steady_clock::now();
  if (done != total && now < next_) return;
  next_ = now + kPeriod;
  nanobind::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  if (!tell_.is_none()) tell_(done, total);
}

}  // namespace sluice::python
