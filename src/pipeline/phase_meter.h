#pragma once
// Measures one phase: time, peak anonymous memory, bytes read and page cache.

#include "base/peak_memory.h"
#include "pipeline/backends.h"

#include <chrono>
#include <string>
#include <vector>

namespace sluice::pipeline {

struct PhaseFigures {
  std::string name;
  double seconds = 0;
  Bytes bytes_read = 0;
  Bytes peak_anonymous = 0;
  Bytes page_cache = 0;  // of the checkpoints' files at the phase's end
};

class PhaseMeter {
 public:
  PhaseMeter(std::string name, const Backends& backends);
  PhaseMeter(const PhaseMeter&) = delete;
  PhaseMeter& operator=(const PhaseMeter&) = delete;

  PhaseFigures finish();

 private:
  std::string name_;
  const Backends& backends_;
  Bytes read_before_;
  std::chrono::steady_clock::time_point start_;
  PeakMemory peak_;
};

}  // namespace sluice::pipeline
