#include "support/peak_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace sluice::test {
namespace {

constexpr std::size_t kHeader = 64;  // keeps the alignment that LibTorch wants; holds the size

// Not the object's: a tensor may outlive it.
std::atomic<std::int64_t> live = 0;
std::atomic<std::int64_t> most = 0;
std::atomic<std::int64_t> largest_block = 0;

void raise(std::atomic<std::int64_t>& to, std::int64_t value) {
  std::int64_t seen = to;
  while (value > seen && !to.compare_exchange_weak(seen, value)) {
  }
}

void release(void* data) {
  if (!data) return;
  std::byte* block = static_cast<std::byte*>(data) - kHeader;
  std::int64_t bytes = 0;
  std::memcpy(&bytes, block, sizeof bytes);
  live -= bytes;
  std::free(block);
}

}  // namespace

PeakAllocator::PeakAllocator() : before_(c10::GetCPUAllocator()) {
  live = 0;
  most = 0;
  largest_block = 0;
  c10::SetCPUAllocator(this);
}

PeakAllocator::~PeakAllocator() {
  c10::SetCPUAllocator(before_);
}

std::int64_t PeakAllocator::peak() const {
  return most;
}

std::int64_t PeakAllocator::largest() const {
  return largest_block;
}

c10::DataPtr PeakAllocator::allocate(std::size_t bytes) {
  if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
  const std::size_t padded = (bytes + kHeader - 1) / kHeader * kHeader;
  auto* block = static_cast<std::byte*>(std::aligned_alloc(kHeader, kHeader + padded));
  if (!block) throw std::bad_alloc();
  const auto size = static_cast<std::int64_t>(bytes);
  std::memcpy(block, &size, sizeof size);
  raise(most, live += size);
  raise(largest_block, size);
  return {block + kHeader, block + kHeader, &release, c10::Device(c10::kCPU)};
}

c10::DeleterFnPtr PeakAllocator::raw_deleter() const {
  return &release;
}

void PeakAllocator::copy_data(void* to, const void* from, std::size_t count) const {
  std::memcpy(to, from, count);
}

}  // namespace sluice::test
