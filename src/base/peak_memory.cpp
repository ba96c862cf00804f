#include "base/peak_memory.h"

#include "base/system_memory.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>

namespace sluice {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(10);

void raise_to(std::atomic<Bytes>& peak, Bytes value) {
  if (value > peak.load()) peak.store(value);
}

}  // namespace

PeakMemory::PeakMemory() {
  raise_to(peak_, anonymous_memory());
  try {
    sampler_ = std::jthread([this](std::stop_token stop) {
      std::mutex mutex;
      std::condition_variable_any wake;
      std::unique_lock lock(mutex);
      while (!stop.stop_requested()) {
        raise_to(peak_, anonymous_memory());
        wake.wait_for(lock, stop, kInterval, [] { return false; });
      }
    });
  } catch (const std::system_error&) {
    // No thread to be had: what is held at the start and at the end is all that can be told.
  }
}

Bytes PeakMemory::finish() {
  if (sampler_.joinable()) {
    sampler_.request_stop();
    sampler_.join();
  }
  if (!std::exchange(finished_, true)) raise_to(peak_, anonymous_memory());
  return peak_;
}

}  // namespace sluice
