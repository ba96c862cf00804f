#include "base/allocator.h"

#include <climits>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace sluice {

void keep_freed_memory() {
#if defined(__GLIBC__)
  // Larger blocks (a whole weight widened) are mapped and given back: kept, one would block the heap's top.
  constexpr int kMmapThreshold = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kMmapThreshold);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

}  // namespace sluice
