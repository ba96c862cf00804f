#pragma once
// Lets go of what reading brings into the page cache, behind the reader, window by window; what was there
// before stays.

#include "base/file.h"

#include <sluice/units.h>

#include <functional>
#include <memory>

namespace sluice::bytes {

inline constexpr Bytes kCacheWindow = MiB(512);

// For one file and one pass of ascending offsets.  Before a window is read, what of it is resident is noted
// (mincore or cachestat: nothing is touched); when reading has moved on past its end, what was not is dropped.
// Any thread.
class CacheWindow {
 public:
  // `unmap(begin, end)`: lets go of live mappings of that range first (MADV_DONTNEED), since pages that a
  // mapping holds are not dropped; empty if there are none.
  CacheWindow(const File& file, std::function<void(Bytes begin, Bytes end)> unmap);
  ~CacheWindow();

  void about_to_read(Bytes offset, Bytes size);
  void has_read(Bytes offset, Bytes size);
  void finish();  // drops what is left; by the destructor otherwise

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::bytes
