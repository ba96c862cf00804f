#include "base/process_usage.h"

#include <sys/resource.h>

namespace sluice {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

ProcessUsage process_usage() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {.at = std::chrono::steady_clock::now(),
          .cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime),
          .page_faults = static_cast<std::uint64_t>(usage.ru_minflt + usage.ru_majflt)};
}

UsedBetween operator-(const ProcessUsage& after, const ProcessUsage& before) {
  return {.seconds = std::chrono::duration<double>(after.at - before.at).count(),
          .cpu_seconds = after.cpu_seconds - before.cpu_seconds,
          .page_faults = after.page_faults - before.page_faults};
}

}  // namespace sluice
