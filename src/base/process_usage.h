#pragma once
// What this process has spent so far, by the kernel's account: the difference of two is what lies between.

#include <chrono>
#include <cstdint>

namespace sluice {

struct ProcessUsage {
  std::chrono::steady_clock::time_point at;
  double cpu_seconds = 0;  // of all threads, those that have ended too
  std::uint64_t page_faults = 0;
};
ProcessUsage process_usage();

struct UsedBetween {
  double seconds = 0;
  double cpu_seconds = 0;
  std::uint64_t page_faults = 0;
};
UsedBetween operator-(const ProcessUsage& after, const ProcessUsage& before);

}  // namespace sluice
