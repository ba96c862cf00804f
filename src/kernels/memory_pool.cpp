#include "kernels/memory_pool.h"

#include "kernels/block_list.h"

#include <sluice/error.h>

#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace sluice::kernels {
namespace {

constexpr Bytes kSmall = KiB(64);  // below it the C library's allocator is used
constexpr std::size_t kAlignment = 64;

Bytes machine_memory() {
  return static_cast<Bytes>(::sysconf(_SC_PHYS_PAGES)) * static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
}

class Pool final : public c10::Allocator {
 public:
  Pool(std::byte* base, Bytes size) : base_(base), size_(size), blocks_(size) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    void* data = bytes == 0 ? nullptr : bytes < kSmall ? small(bytes) : large(bytes);
    return {data, data, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    std::memcpy(to, from, count);
  }

  PoolFigures figures() const {
    const std::scoped_lock lock(mutex_);
    return {.live = blocks_.live(), .peak_live = peak_live_, .extent = blocks_.extent()};
  }

  void begin_phase(Bytes keep) {
    const std::scoped_lock lock(mutex_);
    for (const BlockList::Part& hole : blocks_.holes()) give_pages_back(hole, keep);
    blocks_.forget_extent();
    peak_live_ = blocks_.live();
  }

  void limit(Bytes bytes) {
    const std::scoped_lock lock(mutex_);
    limit_ = bytes == 0 ? size_ : std::min(bytes, size_);
  }

 private:
  static void* small(std::size_t bytes) {
    void* data = nullptr;
    if (::posix_memalign(&data, kAlignment, bytes) != 0) refuse(bytes, "the system has no more");
    return data;
  }

  void* large(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    const std::optional<Bytes> offset = blocks_.take(bytes);
    if (offset && *offset + bytes > limit_) blocks_.give_back(*offset);
    if (!offset || *offset + bytes > limit_) {
      refuse(bytes, fmt::format("{} of {} that tensors may take are in use", format_bytes(blocks_.live()),
                                format_bytes(limit_)));
    }
    peak_live_ = std::max(peak_live_, blocks_.live());
    return base_ + *offset;
  }

  [[noreturn]] static void refuse(std::size_t bytes, const std::string& why) {
    throw Error(ErrorKind::does_not_fit,
                fmt::format("a tensor of {} does not fit: {}", format_bytes(bytes), why),
                "raise --memory-limit, or ask for fewer or smaller frames; sluice plan shows what is needed");
  }

  static void release(void* data);

  void give_pages_back(const BlockList::Part& hole, Bytes keep) const {
    const auto page = static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
    const Bytes begin = (std::max(hole.offset, keep) + page - 1) / page * page;
    const Bytes end = (hole.offset + hole.size) / page * page;
    if (begin < end) ::madvise(base_ + begin, end - begin, MADV_DONTNEED);
  }

  std::byte* const base_;
  const Bytes size_;
  mutable std::mutex mutex_;
  BlockList blocks_;
  Bytes peak_live_ = 0;
  Bytes limit_ = size_;
};

Pool* pool = nullptr;  // never goes: tensors may outlive everything else

void Pool::release(void* data) {
  auto* address = static_cast<std::byte*>(data);
  if (address < pool->base_ || address >= pool->base_ + pool->size_) {
    std::free(data);
    return;
  }
  const std::scoped_lock lock(pool->mutex_);
  pool->blocks_.give_back(static_cast<Bytes>(address - pool->base_));
}

void make_pool() {
  // Twice the memory: a range with holes can be larger than what is in it.
  const Bytes size = 2 * machine_memory();
  void* base =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return;
  pool = new Pool(static_cast<std::byte*>(base), size);
  c10::SetCPUAllocator(pool);
}

}  // namespace

void install_memory_pool() {
  static std::once_flag once;
  std::call_once(once, make_pool);
}

PoolFigures pool_figures() {
  return pool ? pool->figures() : PoolFigures{};
}

void begin_pool_phase(Bytes keep) {
  if (pool) pool->begin_phase(keep);
}

void limit_memory_pool(Bytes limit) {
  if (pool) pool->limit(limit);
}

}  // namespace sluice::kernels
