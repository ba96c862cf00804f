#include "bytes/load/huge_pages.h"

#include "base/syscalls.h"
#include "bytes/load/touch_pages.h"

#include <sluice/error.h>
#include <sluice/units.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <chrono>
#include <fstream>
#include <span>
#include <string>

namespace sluice::bytes {
namespace {

constexpr Bytes kHugePage = MiB(2);
// 8 MiB of each kind take 4 + 1 ms where all is well.  Where huge pages are slow (0.3 GiB/s measured on a
// virtual machine, 7 ms a page) the race is decided earlier.
constexpr int kRounds = 4;
constexpr double kEnoughSeconds = 0.015;

// Address space of its own for one kind of pages, given back at the end.
class Trial {
 public:
  explicit Trial(int advice) {
    void* map = syscalls().mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return;
    map_ = static_cast<std::byte*>(map);
    const auto address = reinterpret_cast<std::uintptr_t>(map);
    next_ = map_ + ((address + kHugePage - 1) / kHugePage * kHugePage - address);
    willing_ = syscalls().madvise(map_, kSize, advice) == 0;
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() {
    if (map_ != nullptr) ::munmap(map_, kSize);
  }

  bool willing() const { return willing_; }
  double seconds() const { return seconds_; }

  void touch_next() {
    const auto start = std::chrono::steady_clock::now();
    touch_pages({next_, kHugePage});
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    next_ += kHugePage;
  }

 private:
  static constexpr Bytes kSize = kHugePage * (kRounds + 1);

  std::byte* map_ = nullptr;
  std::byte* next_ = nullptr;
  bool willing_ = false;
  double seconds_ = 0;
};

bool offered() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string enabled;
  std::getline(file, enabled);
  return offers_huge_pages(enabled) && ::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) != 1;
}

bool measure() try {
  if (!offered()) return false;
  Trial huge(MADV_HUGEPAGE), plain(MADV_NOHUGEPAGE);
  if (!huge.willing() || !plain.willing()) return false;
  for (int round = 0; round < kRounds && huge.seconds() + plain.seconds() < kEnoughSeconds; ++round) {
    plain.touch_next();
    huge.touch_next();
  }
  return huge.seconds() < plain.seconds();
} catch (const Error&) {
  return false;  // no memory for the trial: the slab itself says so, with its own numbers
}

}  // namespace

bool offers_huge_pages(std::string_view enabled) {
  return enabled.find("[always]") != std::string_view::npos ||
         enabled.find("[madvise]") != std::string_view::npos;
}

bool huge_pages_pay() {
  static const bool pay = measure();
  return pay;
}

}  // namespace sluice::bytes
