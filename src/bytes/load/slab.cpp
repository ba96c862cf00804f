#include <sluice/slab.h>

#include "base/file.h"
#include "base/syscalls.h"
#include "base/system_memory.h"
#include "bytes/load/huge_pages.h"
#include "bytes/load/touch_pages.h"
#include "bytes/read/chunks.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <sys/mman.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <limits>

namespace sluice {
namespace {

constexpr Bytes kAlignment = MiB(2);  // a huge page on x86-64 and on arm64 with 4 KiB pages
// Touching less than this in either kind of page takes no longer than the probe.
constexpr Bytes kProbeFrom = MiB(64);

Error refusal(Bytes size, int error_number) {
  return Error(ErrorKind::does_not_fit,
               fmt::format("cannot take {} of memory: {} ({})", format_bytes(size),
                           system_reason(error_number), address_space_limit()),
               "free memory, raise the limit (ulimit -v), or load fewer tensors");
}

bool decide(HugePages huge, Bytes size) {
  if (huge == HugePages::automatic) return size >= kProbeFrom && bytes::huge_pages_pay();
  return huge == HugePages::always;
}

}  // namespace

struct Slab::State {
  explicit State(HugePages wish) : wish(wish) {}
  ~State() { release(); }

  void release() {
    if (!memory.empty()) ::munmap(memory.data(), memory.size());
    memory = {};
    touched = 0;
    huge = false;
  }

  // `size`: a multiple of kAlignment.
  void take(Bytes size) {
    const Bytes mapped = size + kAlignment;
    void* map = syscalls().mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw refusal(size, errno);
    auto* begin = static_cast<std::byte*>(map);
    const Bytes before = (kAlignment - reinterpret_cast<std::uintptr_t>(map) % kAlignment) % kAlignment;
    if (before > 0) ::munmap(begin, before);
    ::munmap(begin + before + size, kAlignment - before);
    memory = {begin + before, size};
  }

  const HugePages wish;
  std::span<std::byte> memory;
  std::atomic<Bytes> touched = 0;  // only grows between two calls of release()
  bool huge = false;
};

Slab::Slab(HugePages huge) : state_(std::make_unique<State>(huge)) {}
Slab::~Slab() = default;
Slab::Slab(Slab&&) noexcept = default;
Slab& Slab::operator=(Slab&&) noexcept = default;

void Slab::reserve(Bytes size) {
  if (size <= state_->memory.size()) return;
  if (size > std::numeric_limits<Bytes>::max() - 2 * kAlignment) throw refusal(size, ENOMEM);
  // First given back, then taken: what was held and what is needed never exist at once.
  state_->release();
  state_->take((size + kAlignment - 1) / kAlignment * kAlignment);
  const bool huge = decide(state_->wish, size);
  // Refused by a kernel without transparent huge pages, for which there is nothing to decide.
  const int refused = syscalls().madvise(state_->memory.data(), state_->memory.size(),
                                         huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  state_->huge = huge && refused == 0;
}

std::span<std::byte> Slab::bytes() const {
  return state_->memory;
}

bool Slab::huge() const {
  return state_->huge;
}

Bytes Slab::touched() const {
  return state_->touched;
}

void Slab::mark_touched(Bytes end) {
  end = std::min<Bytes>(end, state_->memory.size());
  Bytes before = state_->touched;
  while (before < end && !state_->touched.compare_exchange_weak(before, end)) {
  }
}

double Slab::touch(Bytes size, unsigned threads) {
  const auto start = std::chrono::steady_clock::now();
  size = std::min<Bytes>(size, state_->memory.size());
  // No huge page is shared by two pieces.
  const Bytes from = state_->touched / kAlignment * kAlignment;
  if (state_->touched < size) {
    bytes::for_each_chunk(size - from, threads, [&](Bytes begin, Bytes piece) {
      bytes::touch_pages(state_->memory.subspan(from + begin, piece));
    });
    mark_touched(size);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace sluice
