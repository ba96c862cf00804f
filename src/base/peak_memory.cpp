#include "base/peak_memory.h"

#include "base/system_memory.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace sluice {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(10);

void raise_to(std::atomic<Bytes>& peak, Bytes value) {
  if (value > peak.load()) peak.store(value);
}

}  // namespace

PeakMemory::PeakMemory() {
  sampler_ = std::jthread([this](std::stop_token stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      raise_to(peak_, anonymous_memory());
      wake.wait_for(lock, stop, kInterval, [] { return false; });
    }
  });
}

Bytes PeakMemory::finish() {
  if (sampler_.joinable()) {
    sampler_.request_stop();
    sampler_.join();
    raise_to(peak_, anonymous_memory());
  }
  return peak_;
}

}  // namespace sluice
