#include "bytes/read/cache_watch.h"

#include "base/syscalls.h"
#include "bytes/format/checkpoint_state.h"

namespace sluice::bytes {
namespace {

// To a window all use of a file is one long read that has come to its last byte.
template <class Tell>
void as_one_read(const Shard& shard, Tell tell) {
  tell(Bytes{0}, shard.file_size);
  tell(shard.file_size - 1, Bytes{1});
}

}  // namespace

CacheWatch::CacheWatch(const Checkpoint& checkpoint, std::span<const Mapping> mappings)
    : checkpoint_(checkpoint) {
  const CheckpointAccess::State& state = CheckpointAccess::state(checkpoint_);
  for (std::size_t i = 0; i < state.files.size(); ++i) {
    CacheWindow::Unmap unmap;
    if (!mappings.empty()) {
      unmap = [&mapping = mappings[i]](Bytes begin, Bytes end) {
        auto* address = const_cast<std::byte*>(mapping.bytes().data()) + begin;
        syscalls().madvise(address, end - begin, MADV_DONTNEED);
      };
    }
    windows_.push_back(std::make_unique<CacheWindow>(state.files[i], unmap));
    as_one_read(state.shards[i], [&](Bytes offset, Bytes size) { windows_[i]->about_to_read(offset, size); });
  }
}

CacheWatch::~CacheWatch() {
  const std::vector<Shard>& shards = checkpoint_.shards();
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    try {
      as_one_read(shards[i], [&](Bytes offset, Bytes size) { windows_[i]->has_read(offset, size); });
    } catch (...) {
      // Without memory for its lists the window's own end does what it can.
    }
  }
}

void CacheWatch::drop() {
  for (const auto& window : windows_) window->drop_now();
}

}  // namespace sluice::bytes
