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

void give_back_freed_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace sluice
