// The refusal of <sluice/memory.h>: what is needed as a sum, and the remedies that are enough.
#include "base/system_memory.h"

#include <sluice/error.h>
#include <sluice/memory.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace sluice {
namespace {

constexpr Bytes kGreatest = std::numeric_limits<Bytes>::max();

Bytes plus(Bytes a, Bytes b) {
  return a > kGreatest - b ? kGreatest : a + b;
}

// "30.0 GiB of tensors, 32.0 MiB of read buffers, all times 1.2"
std::string parts_of(const MemoryNeed& need) {
  std::vector<std::string> parts;
  auto part = [&](Bytes bytes, std::string_view what) {
    if (bytes > 0) parts.push_back(fmt::format("{} of {}", format_bytes(bytes), what));
  };
  part(need.targets, "tensors");
  part(need.pool, "read buffers");
  part(need.staging, "room to put a tensor together");
  if (need.multiplier != 1) parts.push_back(fmt::format("all times {:g}", need.multiplier));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string remedy(const MemoryNeed& need, Bytes available) {
  // The smallest pool is far below a MiB: what stands in the way is not the pool if this is not enough.
  MemoryNeed small = need;
  small.pool = std::min(need.pool, MiB(1));
  if (small.pool < need.pool && small.total() <= available) {
    const double room = static_cast<double>(available) / need.multiplier;
    const Bytes pool = (static_cast<Bytes>(room) - need.targets - need.staging) >> 20;
    return fmt::format("try --pool {}MiB", std::max<Bytes>(pool, 1));
  }
  if (need.targets == 0) return "free memory, or raise the limit of the control group";
  return "load fewer tensors (--include, --exclude), a share of them (--world), or raise the limit";
}

}  // namespace

Bytes MemoryNeed::total() const {
  const Bytes sum = plus(plus(targets, pool), staging);
  if (multiplier == 1) return sum;
  const double product = static_cast<double>(sum) * multiplier;
  return product < static_cast<double>(kGreatest) ? static_cast<Bytes>(product) : kGreatest;
}

void require_memory(const MemoryNeed& need, Bytes available, std::string_view what) {
  if (need.total() <= available) return;
  throw Error(
      ErrorKind::does_not_fit,
      fmt::format("{}: not enough memory: needs {} ({}), {} available beside the {} that this process holds",
                  what, format_bytes(need.total()), parts_of(need), format_bytes(available),
                  format_bytes(anonymous_memory())),
      remedy(need, available));
}

}  // namespace sluice
