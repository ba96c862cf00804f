#include "bytes/read/page_cache.h"

#include "bytes/read/file_system.h"
#include "bytes/read/page_size.h"
#include "bytes/read/residency.h"

#include <algorithm>

namespace sluice::bytes {
namespace {

// Far apart: a sample of what is not in memory is a small read from the disk.
constexpr Bytes kMostSamples = 256;

Bytes count_pages(const File& file, Bytes size) {
  constexpr Bytes kWindow = GiB(1);
  Residency residency(file, std::max(MiB(1), size / kMostSamples));
  Bytes cached = 0;
  for (Bytes begin = 0; begin < size; begin += kWindow) {
    const std::vector<bool> pages = residency.pages(begin, std::min(begin + kWindow, size));
    cached += page_size() * static_cast<Bytes>(std::ranges::count(pages, true));
  }
  return std::min(cached, size);
}

}  // namespace

Bytes cached_bytes(const File& file) {
  const Bytes size = file.identity().size;
  if (file_system(file).kind != FileSystemKind::stacked) {
    if (const auto counted = counted_by_system(file, 0, size)) return *counted;
  }
  return count_pages(file, size);
}

Bytes cached_bytes(const std::filesystem::path& path) {
  return cached_bytes(File::open(path));
}

}  // namespace sluice::bytes
