#include "bytes/read/prefetch.h"

#include <fcntl.h>
#include <algorithm>

namespace sluice::bytes {
namespace {

// Less than this is left to the next read.
constexpr Bytes kStep = MiB(8);
// The system brings in no more for one call than its readahead: 128 KiB where nobody has set another.
constexpr Bytes kCall = KiB(128);

void ask_for(const File& file, Bytes begin, Bytes end) {
  for (Bytes at = begin; at < end; at += kCall) {
    ::posix_fadvise(file.descriptor(), static_cast<off_t>(at), static_cast<off_t>(std::min(kCall, end - at)),
                    POSIX_FADV_WILLNEED);
  }
}

}  // namespace

Prefetch::Prefetch(const File& file, Bytes begin, Bytes end) : file_(file), end_(end), asked_(begin) {
  ::posix_fadvise(file.descriptor(), static_cast<off_t>(begin), 0, POSIX_FADV_SEQUENTIAL);
}

void Prefetch::about_to_read(Bytes offset) {
  const Bytes until = std::min(offset + kPrefetchAhead, end_);
  Bytes from = asked_;
  do {
    if (from >= until || (until - from < kStep && until < end_)) return;
    // What lies before the reader is read already, or will never be.
  } while (!asked_.compare_exchange_weak(from, until));
  ask_for(file_, std::max(from, offset), until);
}

}  // namespace sluice::bytes
