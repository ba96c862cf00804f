#include "bytes/read/mapped_checkpoint.h"

#include "base/syscalls.h"
#include "bytes/format/checkpoint_state.h"
#include "bytes/format/unchanged.h"
#include "bytes/read/cache_watch.h"
#include "bytes/read/mapping.h"
#include "bytes/read/page_size.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace sluice::bytes {

struct MappedCheckpoint::State {
  State(const Checkpoint& from, CachePolicy policy)
      : checkpoint(from), files(CheckpointAccess::state(checkpoint)), cache(policy) {
    mappings.reserve(files.shards.size());
    for (std::size_t i = 0; i < files.shards.size(); ++i)
      mappings.emplace_back(files.files[i], files.shards[i].file_size);
    if (cache == CachePolicy::drop) watch.emplace(checkpoint, mappings);
  }

  const Checkpoint checkpoint;  // keeps the files open
  const CheckpointAccess::State& files;
  const CachePolicy cache;
  std::vector<Mapping> mappings;    // one a shard
  std::optional<CacheWatch> watch;  // with CachePolicy::drop
  std::mutex mutex;
  std::set<std::pair<std::size_t, Bytes>> seen;  // shard and offset of views; guarded by mutex
  Bytes viewed = 0;                              // of them; guarded by mutex
};

MappedCheckpoint::MappedCheckpoint(const Checkpoint& checkpoint, CachePolicy cache)
    : state_(std::make_unique<State>(checkpoint, cache)) {}

MappedCheckpoint::~MappedCheckpoint() = default;

std::span<const std::byte> MappedCheckpoint::view(const TensorInfo& tensor) const {
  check_range(state_->files, tensor, 0, tensor.size);
  if (tensor.size > 0) {
    const std::lock_guard lock(state_->mutex);
    if (state_->seen.emplace(tensor.shard, tensor.offset).second) state_->viewed += tensor.size;
  }
  return state_->mappings[tensor.shard].bytes().subspan(tensor.offset, tensor.size);
}

void MappedCheckpoint::prefetch(const TensorInfo& tensor) const {
  if (state_->cache != CachePolicy::prefetch || tensor.size == 0) return;
  check_range(state_->files, tensor, 0, tensor.size);
  const Bytes begin = tensor.offset / page_size() * page_size();
  auto* address = const_cast<std::byte*>(state_->mappings[tensor.shard].bytes().data()) + begin;
  syscalls().madvise(address, tensor.offset + tensor.size - begin, MADV_WILLNEED);
}

void MappedCheckpoint::let_go() {
  if (state_->watch) state_->watch->drop();
}

void MappedCheckpoint::check() const {
  const CheckpointAccess::State& files = state_->files;
  for (std::size_t i = 0; i < state_->mappings.size(); ++i) {
    if (!state_->mappings[i].damaged()) continue;
    throw Error(
        ErrorKind::corrupt_file,
        fmt::format("{}: the file shrank while it was mapped: it had {} bytes, now it has {}",
                    files.shards[i].path.string(), files.identities[i].size, files.files[i].identity().size),
        std::string(kKeepUnchanged));
  }
  require_unchanged(files);
}

Bytes MappedCheckpoint::bytes_viewed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->viewed;
}

}  // namespace sluice::bytes
