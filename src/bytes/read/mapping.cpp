#include "bytes/read/mapping.h"

#include "base/syscalls.h"
#include "base/system_memory.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <sys/syscall.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <utility>

namespace sluice::bytes {
namespace {

// A signal handler may take no lock and no memory, so mappings are kept in a fixed table of atomics: 1024
// shards at a time, more than any published checkpoint has by two orders of magnitude.
struct Slot {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};  // 0: not in use
  std::atomic<bool> taken{false};
  std::atomic<bool> damaged{false};
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

std::array<Slot, 1024> slots;
struct sigaction previous_action;
std::uintptr_t page_size;  // set before the handler is

Slot* find_slot(std::uintptr_t address) {
  for (Slot& slot : slots) {
    std::uintptr_t end = slot.end.load();
    bool inside = end != 0 && slot.begin.load() <= address && address < end;
    // A slot that changes hands meanwhile is another mapping's: the one that faults stays until its reader is
    // done.
    if (inside && slot.end.load() == end) return &slot;
  }
  return nullptr;
}

// From the faulting page to the end of the mapping: if this page is beyond the file's end, so are those after
// it, and one replacement spares a fault for each.
bool replace_by_zeros(Slot& slot, std::uintptr_t address) {
  std::uintptr_t page = address & ~(page_size - 1);
  slot.damaged.store(true);
  // The system call itself: it is safe in a handler, the C library's wrapper does not promise to be.
  long result = ::syscall(SYS_mmap, page, slot.end.load() - page, PROT_READ,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0L);
  return result == static_cast<long>(page);
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler == SIG_DFL || previous_action.sa_handler == SIG_IGN) {
    // Returning repeats the fault, which then ends the process as it would have without us.  A signal that
    // was sent does not repeat by itself.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    ::sigaction(SIGBUS, &standard, nullptr);
    if (info->si_code <= 0) ::raise(SIGBUS);
  } else {
    previous_action.sa_handler(signal);
  }
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  int saved_errno = errno;
  auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  Slot* slot = info->si_code == BUS_ADRERR ? find_slot(address) : nullptr;
  if (slot == nullptr || !replace_by_zeros(*slot, address)) pass_on(signal, info, context);
  errno = saved_errno;
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    // Known before ours can run: the handler reads it.
    ::sigaction(SIGBUS, nullptr, &previous_action);
    ::sigaction(SIGBUS, &action, nullptr);
  });
}

std::size_t take_slot(const File& file) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].taken.exchange(true)) return i;
  }
  throw Error(ErrorKind::io,
              fmt::format("{}: cannot map: {} files are mapped already", file.path().string(), slots.size()),
              "use --read-backend pread");
}

}  // namespace

Mapping::Mapping(const File& file, Bytes size) : slot_(take_slot(file)) {
  install_handler();
  void* address = syscalls().mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (address == MAP_FAILED) {
    int error_number = errno;
    slots[slot_].taken.store(false);
    throw Error(ErrorKind::io,
                fmt::format("{}: cannot map {}: {} ({})", file.path().string(), format_bytes(size),
                            system_reason(error_number), address_space_limit()),
                "use --read-backend pread, or raise the limit (ulimit -v)");
  }
  bytes_ = {static_cast<const std::byte*>(address), size};
  auto begin = reinterpret_cast<std::uintptr_t>(address);
  slots[slot_].damaged.store(false);
  slots[slot_].begin.store(begin);
  // To the end of the last page: bytes behind the file's end in it never fault on their own.
  slots[slot_].end.store((begin + size + page_size - 1) & ~(page_size - 1));
}

Mapping::Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})), slot_(other.slot_) {}

Mapping::~Mapping() {
  if (bytes_.empty()) return;
  slots[slot_].end.store(0);
  slots[slot_].begin.store(0);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  slots[slot_].taken.store(false);
}

bool Mapping::damaged() const {
  return slots[slot_].damaged.load();
}

}  // namespace sluice::bytes
