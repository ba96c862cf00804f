#pragma once
// Refuses one allocation of a CPU tensor, chosen by its number, while it lives; all others are made by the
// allocator that was there before.  One at a time; allocations from any thread.

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <new>

namespace sluice::test {

enum class Refusal { of_libtorch, of_the_language };  // its CPU allocator's error; std::bad_alloc

class FailingAllocator final : public c10::Allocator {
 public:
  FailingAllocator() : before_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this); }
  ~FailingAllocator() override { c10::SetCPUAllocator(before_); }

  // The nth from now on, counted from 1; the count begins anew.
  void refuse(std::int64_t nth, Refusal how) {
    how_ = how;
    made_ = 0;
    refused_ = nth;
  }
  void refuse_none() { refuse(std::numeric_limits<std::int64_t>::max(), Refusal::of_libtorch); }
  std::int64_t made() const { return made_; }  // since the count began

  c10::DataPtr allocate(std::size_t bytes) override {
    if (++made_ == refused_) {
      if (how_ == Refusal::of_the_language) throw std::bad_alloc();
      TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes,
                  " bytes. Error code 12 (Cannot allocate memory)");
    }
    return before_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return before_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    before_->copy_data(to, from, count);
  }

 private:
  c10::Allocator* before_;
  std::atomic<std::int64_t> made_ = 0;
  std::atomic<std::int64_t> refused_ = std::numeric_limits<std::int64_t>::max();
  Refusal how_ = Refusal::of_libtorch;
};

}  // namespace sluice::test
