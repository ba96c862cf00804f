#pragma once
// Where a load from Python goes: memory that Python's objects own, given by address.  Tensors that cannot be
// read in place (on a device, not contiguous) pass one at a time through a host buffer, after which Python is
// asked to copy them out of it.  Owns none of the memory.

#include <sluice/load.h>

#include <nanobind/nanobind.h>

#include <optional>
#include <span>
#include <vector>

namespace sluice::python {

class MemorySink final : public TensorSink {
 public:
  // `places`: by target of the plan; empty optional: through `staging`, which holds the largest of those, and
  // `complete`, called with the target's index once it is there.
  MemorySink(std::vector<std::optional<std::span<std::byte>>> places, std::span<std::byte> staging,
             nanobind::handle complete)
      : places_(std::move(places)), staging_(staging), complete_(complete) {}

  std::span<std::byte> destination(std::size_t target) override {
    return places_[target].value_or(std::span<std::byte>());
  }
  void take(std::size_t target, Bytes offset, std::span<const std::byte> bytes) override;
  void complete(std::size_t target) override;

 private:
  std::vector<std::optional<std::span<std::byte>>> places_;
  std::span<std::byte> staging_;
  nanobind::handle complete_;
};

}  // namespace sluice::python
