#include "memory_sink.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <cstring>

namespace sluice::python {

void MemorySink::take(std::size_t target, Bytes offset, std::span<const std::byte> bytes) {
  if (offset > staging_.size() || bytes.size() > staging_.size() - offset) {
    throw Error(ErrorKind::internal, fmt::format("target {} does not fit the staging buffer of {} bytes",
                                                 target, staging_.size()));
  }
  std::memcpy(staging_.data() + offset, bytes.data(), bytes.size());
}

void MemorySink::complete(std::size_t target) {
  if (places_[target]) return;
  nanobind::gil_scoped_acquire gil;
  complete_(target);
}

}  // namespace sluice::python
