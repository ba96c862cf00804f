#include "pipeline/phase_meter.h"

namespace sluice::pipeline {

PhaseMeter::PhaseMeter(std::string name, const Backends& backends)
    : name_(std::move(name)),
      backends_(backends),
      read_before_(backends.bytes_read()),
      start_(std::chrono::steady_clock::now()) {}

PhaseFigures PhaseMeter::finish() {
  const Bytes peak = peak_.finish();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  return {.name = name_,
          .seconds = elapsed.count(),
          .bytes_read = backends_.bytes_read() - read_before_,
          .peak_anonymous = peak,
          .page_cache = backends_.page_cache()};
}

}  // namespace sluice::pipeline
