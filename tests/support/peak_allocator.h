#pragma once
// Counts the bytes of CPU tensors while it lives: what exists at once, at most, and the largest block. Memory
// that the convolution library takes for itself is not seen.

#include <c10/core/Allocator.h>

#include <cstdint>

namespace sluice::test {

class PeakAllocator final : public c10::Allocator {
 public:
  PeakAllocator();
  ~PeakAllocator() override;

  std::int64_t peak() const;
  std::int64_t largest() const;  // block that was allocated

  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t count) const override;

 private:
  c10::Allocator* before_;
};

}  // namespace sluice::test
