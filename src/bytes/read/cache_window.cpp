#include "bytes/read/cache_window.h"

#include "bytes/read/page_size.h"
#include "bytes/read/residency.h"

#include <fcntl.h>
#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice::bytes {
namespace {

struct Run {
  Bytes begin = 0, end = 0;
};

// The runs of pages that are `false`, in bytes of a file in which `begin` is the first page.
std::vector<Run> runs_of_absent(const std::vector<bool>& pages, Bytes begin) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (pages[i]) continue;
    const Bytes page = begin + i * page_size();
    if (runs.empty() || runs.back().end != page) runs.push_back({page, page});
    runs.back().end = page + page_size();
  }
  return runs;
}

struct Window {
  std::vector<Run> absent;  // before anything of it was read
  unsigned reads = 0;       // that reach into it and are not done
  bool to_drop = false;     // something was read since it was last dropped
};

}  // namespace

struct CacheWindow::State {
  State(const File& from, Unmap unmap_first, Bytes window)
      : file(from),
        unmap(std::move(unmap_first)),
        size(window),
        file_size(from.identity().size),
        residency(from) {}

  // With mutex held.
  void note(Bytes index) {
    const Bytes begin = index * size;
    if (begin >= file_size || windows.contains(index)) return;
    windows[index].absent = runs_of_absent(residency.pages(begin, std::min(begin + size, file_size)), begin);
  }

  // The windows that reading has left behind, with mutex held; they can be dropped without it, since a window
  // stays where it is and its runs as they are.
  std::vector<const Window*> take_finished() {
    std::vector<const Window*> finished;
    for (auto& [index, window] : windows) {
      if (index >= newest || !window.to_drop || window.reads > 0) continue;
      window.to_drop = false;
      finished.push_back(&window);
    }
    return finished;
  }

  // Some hundredths of a second for 512 MiB.
  void drop(const Window& window) const {
    for (const Run& run : window.absent) {
      if (unmap) unmap(run.begin, std::min(run.end, file_size));
      ::posix_fadvise(file.descriptor(), static_cast<off_t>(run.begin),
                      static_cast<off_t>(run.end - run.begin), POSIX_FADV_DONTNEED);
    }
  }

  // Whether something is there that reading brought in.  Samples would bring in pages of their own.
  bool is_left(Bytes index, const Window& window) {
    if (residency.means() != ResidencyMeans::pages) return false;
    const Bytes begin = index * size, end = std::min(begin + size, file_size);
    // Counts pages that are on their way from the disk too, which mincore does not show.
    Bytes kept = end - begin;
    for (const Run& run : window.absent) kept -= std::min(run.end, end) - run.begin;
    if (counted_by_system(file, begin, end).value_or(0) > kept + page_size()) return true;
    const std::vector<bool> pages = residency.pages(begin, end);
    return std::ranges::any_of(window.absent, [&](const Run& run) {
      const auto first = pages.begin() + static_cast<std::ptrdiff_t>((run.begin - begin) / page_size());
      const auto last = pages.begin() + static_cast<std::ptrdiff_t>((run.end - begin) / page_size());
      return std::find(first, last, true) != last;
    });
  }

  const File& file;
  const Unmap unmap;
  const Bytes size;
  const Bytes file_size;
  std::mutex mutex;
  Residency residency;              // guarded by mutex
  std::map<Bytes, Window> windows;  // by number; guarded by mutex
  Bytes newest = 0;                 // number of the last window in which a read began; guarded by mutex
};

CacheWindow::CacheWindow(const File& file, Unmap unmap, Bytes window)
    : state_(std::make_unique<State>(file, std::move(unmap), window)) {}

CacheWindow::~CacheWindow() {
  try {
    finish();
  } catch (...) {
    // Without memory for the list of pages they stay in the page cache, from where the system takes them.
  }
}

void CacheWindow::about_to_read(Bytes offset, Bytes size) {
  if (size == 0) return;
  const Bytes first = offset / state_->size, last = (offset + size - 1) / state_->size;
  std::lock_guard lock(state_->mutex);
  for (Bytes index = first; index <= last + 1; ++index) state_->note(index);
  for (Bytes index = first; index <= last; ++index) {
    ++state_->windows[index].reads;
    state_->windows[index].to_drop = true;
  }
  state_->newest = std::max(state_->newest, first);
}

void CacheWindow::has_read(Bytes offset, Bytes size) {
  if (size == 0) return;
  const Bytes first = offset / state_->size, last = (offset + size - 1) / state_->size;
  std::vector<const Window*> finished;
  {
    std::lock_guard lock(state_->mutex);
    for (Bytes index = first; index <= last; ++index) --state_->windows[index].reads;
    finished = state_->take_finished();
  }
  for (const Window* window : finished) state_->drop(*window);
}

void CacheWindow::drop_now() {
  std::lock_guard lock(state_->mutex);
  // All of them: what was read ahead of a window, or around a page of the next, came after the drop.
  for (const auto& [index, window] : state_->windows) state_->drop(window);
  // Pages that are on their way from the disk cannot be dropped: a tenth of a second for the last of them.
  for (int attempt = 0; attempt < 10; ++attempt) {
    bool left = false;
    for (const auto& [index, window] : state_->windows) {
      if (index < state_->newest || !state_->is_left(index, window)) continue;
      left = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      state_->drop(window);
    }
    if (!left) break;
  }
}

void CacheWindow::finish() {
  drop_now();
  std::lock_guard lock(state_->mutex);
  state_->windows.clear();
}

}  // namespace sluice::bytes
