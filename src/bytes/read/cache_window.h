#pragma once
// Lets go of what reading brings into the page cache, behind the reader, window by window; what was there
// before stays.

#include "base/file.h"

#include <sluice/units.h>

#include <functional>
#include <memory>

namespace sluice::bytes {

inline constexpr Bytes kCacheWindow = MiB(512);

// For one file and one pass of ascending offsets; windows are the file's, at multiples of their size.  Before
// a window is read, what of it is resident is noted (see residency.h: nothing is touched), and what of the
// one behind it, into which the system reads ahead.  When reading has moved on past a window's end and every
// read that reaches into it is done, its pages that were not resident are dropped.  Pages that are dirty, or
// mapped by another process, stay: they are somebody's.
//
// Where residency is known by samples only, a MiB is kept or dropped as a whole; where it cannot be known at
// all, everything that is read counts as brought in by reading, since dropping is what was asked for.
//
// Any thread.  Every read that begins is told to be done before the end, or has failed and no longer runs.
class CacheWindow {
 public:
  // `unmap(begin, end)`: lets go of live mappings of that range first (MADV_DONTNEED), since pages that a
  // mapping holds are not dropped; empty if there are none.  `file` and what `unmap` uses must outlive it.
  // `window`: a multiple of the page size.
  using Unmap = std::function<void(Bytes begin, Bytes end)>;
  CacheWindow(const File& file, Unmap unmap, Bytes window = kCacheWindow);
  ~CacheWindow();

  void about_to_read(Bytes offset, Bytes size);
  void has_read(Bytes offset, Bytes size);
  // Drops what is there that was not before, what the system read ahead included; what was noted is kept, for
  // reads to come.
  void drop_now();
  // The last drop; by the destructor otherwise.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::bytes
