#include "bytes/load/touch_pages.h"

#include "base/file.h"
#include "base/syscalls.h"
#include "bytes/read/page_size.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <sys/mman.h>
#include <atomic>
#include <cerrno>
#include <cstdint>

namespace sluice::bytes {
namespace {

// Linux 5.14: the faults of a whole range in one call.  Older C libraries have no name for it.
constexpr int kPopulateWrite = 23;

// Exchanges a byte of every page for itself: a write to the page, whatever others do to the byte meanwhile.
void write_each_page(std::uintptr_t begin, std::uintptr_t end) {
  // Never in front of `begin`: the bytes of that page before it may be another thread's.
  for (std::uintptr_t at = begin; at < end; at = (at & ~(page_size() - 1)) + page_size()) {
    std::atomic_ref<unsigned char> byte(*reinterpret_cast<unsigned char*>(at));
    unsigned char value = byte.load(std::memory_order_relaxed);
    byte.compare_exchange_strong(value, value, std::memory_order_relaxed);
  }
}

}  // namespace

void touch_pages(std::span<std::byte> memory) {
  if (memory.empty()) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t end = begin + memory.size();
  const std::uintptr_t first = begin & ~(page_size() - 1),
                       last = (end + page_size() - 1) & ~(page_size() - 1);
  int refused = 0;
  do {
    refused = syscalls().madvise(reinterpret_cast<void*>(first), last - first, kPopulateWrite);
  } while (refused != 0 && errno == EINTR);
  if (refused == 0) return;
  if (errno == ENOMEM) {
    throw Error(
        ErrorKind::does_not_fit,
        fmt::format("cannot take {} of memory: {}", format_bytes(memory.size()), system_reason(ENOMEM)),
        "free memory, or load fewer tensors");
  }
  write_each_page(begin, end);
}

}  // namespace sluice::bytes
