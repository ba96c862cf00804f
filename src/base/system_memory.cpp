#include "base/system_memory.h"

#include <sluice/memory.h>

#include <fmt/format.h>

#include <sys/resource.h>
#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

// The number behind `key` in a file of lines "key number …".
std::optional<Bytes> number_behind(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const auto digit = line.find_first_of("0123456789", key.size());
    if (digit != std::string::npos) return std::stoull(line.substr(digit));
  }
  return std::nullopt;
}

// A file that holds one number; empty for "max" and for files that are not there.
std::optional<Bytes> only_number(const fs::path& path) {
  return number_behind(path, "");
}

fs::path group_folder() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) return fs::path("/sys/fs/cgroup" + line.substr(3));
    const auto memory = line.find(":memory:");
    if (memory != std::string::npos) return fs::path("/sys/fs/cgroup/memory" + line.substr(memory + 8));
  }
  return {};
}

}  // namespace

Bytes anonymous_memory() {
  return number_behind("/proc/self/status", "RssAnon:").value_or(0) * 1024;
}

Bytes left_in_group(const fs::path& folder) {
  auto limit = only_number(folder / "memory.max");
  auto used = only_number(folder / "memory.current");
  if (!limit) limit = only_number(folder / "memory.limit_in_bytes");
  if (!used) used = only_number(folder / "memory.usage_in_bytes");
  if (!limit || !used) return kUnlimited;
  const fs::path stat = folder / "memory.stat";
  Bytes cache = number_behind(stat, "file ").value_or(number_behind(stat, "total_cache ").value_or(0));
  // Counted among the files, but there is nowhere to drop it to.
  cache -= std::min(cache,
                    number_behind(stat, "shmem ").value_or(number_behind(stat, "total_shmem ").value_or(0)));
  const Bytes held = *used - std::min(*used, cache);
  return *limit - std::min(*limit, held);
}

Bytes available_memory() {
  const Bytes system = number_behind("/proc/meminfo", "MemAvailable:").value_or(kUnlimited / 1024) * 1024;
  Bytes left = system;
  // A group's limit holds for the groups inside it.
  for (fs::path folder = group_folder(); folder.has_relative_path() && folder != "/sys/fs";
       folder = folder.parent_path()) {
    left = std::min(left, left_in_group(folder));
  }
  return left;
}

std::string address_space_limit() {
  struct rlimit limit {};
  ::getrlimit(RLIMIT_AS, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return "address space is not limited";
  return fmt::format("address space limit is {}", format_bytes(limit.rlim_cur));
}

}  // namespace sluice
