#include "pipeline/phase_meter.h"

#include <condition_variable>
#include <mutex>

namespace sluice::pipeline {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(10);

void raise_to(std::atomic<Bytes>& peak, Bytes value) {
  if (value > peak.load()) peak.store(value);
}

}  // namespace

PhaseMeter::PhaseMeter(std::string name, const Backends& backends)
    : name_(std::move(name)),
      backends_(backends),
      read_before_(backends.bytes_read()),
      start_(std::chrono::steady_clock::now()) {
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

PhaseMeter::~PhaseMeter() = default;

PhaseFigures PhaseMeter::finish() {
  sampler_.request_stop();
  sampler_.join();
  raise_to(peak_, anonymous_memory());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  return {.name = name_,
          .seconds = elapsed.count(),
          .bytes_read = backends_.bytes_read() - read_before_,
          .peak_anonymous = peak_.load(),
          .page_cache = backends_.page_cache()};
}

}  // namespace sluice::pipeline
