#include "base/cpu_path.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

namespace sluice {
namespace {

constexpr std::array kNames = {"scalar", "avx2", "avx512", "avx512_bf16", "amx"};
constexpr std::array kPaths = {CpuPath::scalar, CpuPath::avx2, CpuPath::avx512, CpuPath::avx512_bf16,
                               CpuPath::amx};

std::size_t index(CpuPath path) {
  return static_cast<std::size_t>(path);
}

#if defined(__x86_64__)
// The bit of leaf 7 that GCC 12 has no name for, and whether the system saves tile registers.
bool has_amx() {
  unsigned eax = 7, ebx = 0, ecx = 0, edx = 0;
  asm("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  constexpr unsigned kTile = 1U << 24, kBf16 = 1U << 22;
  if ((edx & kTile) == 0 || (edx & kBf16) == 0) return false;
  unsigned low = 0, high = 0;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kTileState = 3U << 17;
  return (low & kTileState) == kTileState;
}
#endif

CpuPath best_path() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return CpuPath::scalar;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
    return CpuPath::avx2;
  if (!__builtin_cpu_supports("avx512bf16")) return CpuPath::avx512;
  return has_amx() ? CpuPath::amx : CpuPath::avx512_bf16;
#else
  return CpuPath::scalar;
#endif
}

CpuPath wanted_path() {
  const char* wanted = std::getenv("SLUICE_CPU");
  if (!wanted || !*wanted) return cpu_paths().back();
  std::vector<std::string_view> names;
  for (const CpuPath path : cpu_paths()) {
    if (name(path) == wanted) return path;
    names.push_back(name(path));
  }
  throw Error(ErrorKind::usage, fmt::format("SLUICE_CPU is '{}', which this processor cannot run", wanted),
              fmt::format("it can run {}; without SLUICE_CPU the last one is taken", fmt::join(names, ", ")));
}

// -1: not asked yet.
std::atomic<int> current = -1;

}  // namespace

std::string_view name(CpuPath path) {
  return kNames[index(path)];
}

std::span<const CpuPath> cpu_paths() {
  static const std::size_t count = index(best_path()) + 1;
  return {kPaths.data(), count};
}

CpuPath cpu_path() {
  int path = current.load(std::memory_order_relaxed);
  if (path < 0) {
    path = static_cast<int>(wanted_path());
    current = path;
  }
  return static_cast<CpuPath>(path);
}

void set_cpu_path(CpuPath path) {
  current = static_cast<int>(path);
}

}  // namespace sluice
