#include "bytes/page_cache.h"

#include "base/file.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace sluice::bytes {
namespace {

const Bytes kPage = static_cast<Bytes>(::sysconf(_SC_PAGESIZE));

// cachestat(2), Linux 6.5: asks the file itself, without touching a page.  Older C libraries have no name for
// it.
constexpr long kCachestatCall = 451;
struct CachestatRange {
  std::uint64_t offset = 0, length = 0;  // length 0: to the end
};
struct Cachestat {
  std::uint64_t cached = 0, dirty = 0, writeback = 0, evicted = 0, recently_evicted = 0;  // pages
};

// Before that: a mapping of the file, asked page by page, a window at a time.
Bytes count_by_mincore(const File& file) {
  constexpr Bytes kWindow = GiB(1);
  const Bytes size = file.identity().size;
  Bytes cached = 0;
  for (Bytes begin = 0; begin < size; begin += kWindow) {
    const Bytes length = std::min(kWindow, size - begin);
    void* map = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file.descriptor(), static_cast<off_t>(begin));
    if (map == MAP_FAILED) return cached;
    std::vector<unsigned char> pages((length + kPage - 1) / kPage);
    if (::mincore(map, length, pages.data()) == 0) {
      cached += kPage * static_cast<Bytes>(
                            std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; }));
    }
    ::munmap(map, length);
  }
  return std::min(cached, size);
}

}  // namespace

Bytes cached_bytes(const std::filesystem::path& path) {
  File file = File::open(path);
  CachestatRange range;
  Cachestat stat;
  if (::syscall(kCachestatCall, file.descriptor(), &range, &stat, 0) == 0) {
    return std::min(stat.cached * kPage, file.identity().size);
  }
  return count_by_mincore(file);
}

}  // namespace sluice::bytes
