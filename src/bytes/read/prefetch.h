#pragma once
// Asks the system to bring in what will be read soon: for mounts where every request waits for somebody else.

#include "base/file.h"

#include <atomic>

namespace sluice::bytes {

// What is asked for ahead of the reader: enough to keep a network busy while a few reads of 8 MiB are copied.
inline constexpr Bytes kPrefetchAhead = MiB(64);

// For one file and one pass of ascending offsets over [begin, end).  Any thread.
class Prefetch {
 public:
  // Tells the system that reading is sequential; nothing is asked for yet, so that a CacheWindow can note
  // before what is there.  `file` must outlive it.
  Prefetch(const File& file, Bytes begin, Bytes end);

  // Asks for what lies up to kPrefetchAhead behind `offset` and was not asked for yet.
  void about_to_read(Bytes offset);

 private:
  const File& file_;
  const Bytes end_;
  std::atomic<Bytes> asked_;  // everything before it was asked for
};

}  // namespace sluice::bytes
