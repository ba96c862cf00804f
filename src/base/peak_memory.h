#pragma once
// The most anonymous memory that this process held since the object was made: sampled by a thread of its own
// every 10 ms, since the kernel keeps a peak of all resident memory only, mapped files included.

#include <sluice/units.h>

#include <atomic>
#include <thread>

namespace sluice {

class PeakMemory {
 public:
  PeakMemory();
  PeakMemory(const PeakMemory&) = delete;
  PeakMemory& operator=(const PeakMemory&) = delete;

  Bytes so_far() const { return peak_; }
  // Ends the sampling; later calls give the same.
  Bytes finish();

 private:
  std::atomic<Bytes> peak_ = 0;  // raised by the sampler while it runs, else by finish()
  bool finished_ = false;
  std::jthread sampler_;  // none where the system refuses a thread
};

}  // namespace sluice
