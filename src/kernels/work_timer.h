#pragma once
// Seconds by kind of work, for benches: kernels say what they do for as long as they do it.  Off until a
// bench asks; then it costs two looks at a clock a kernel.  Of the thread that computes; others only help it.

#include <array>
#include <chrono>

namespace sluice::kernels {

enum class Work { linear, attention, convolution, elementwise };

// Seconds of each kind since timing began.
using WorkSeconds = std::array<double, 4>;

void time_work(bool on);  // and from zero
const WorkSeconds& work_seconds();

class WorkTimer {  // for the scope of a kernel; inside another's scope it counts nothing
 public:
  explicit WorkTimer(Work work);
  ~WorkTimer();
  WorkTimer(const WorkTimer&) = delete;
  WorkTimer& operator=(const WorkTimer&) = delete;

 private:
  Work work_;
  bool counts_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace sluice::kernels
