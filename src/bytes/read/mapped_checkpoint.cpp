#include "bytes/read/mapped_checkpoint.h"

#include "base/syscalls.h"
#include "bytes/format/checkpoint_state.h"
#include "bytes/format/unchanged.h"
#include "bytes/read/cache_watch.h"
#include "bytes/read/mapping.h"
#include "bytes/read/page_size.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace sluice::bytes {
namespace {

// What is asked for at once while a run is brought in: the next piece is on its way when one is waited for.
constexpr Bytes kPiece = MiB(8);

// MADV_POPULATE_READ, Linux 5.14; older headers have no name for it.
constexpr int kPopulateForReading = 22;

}  // namespace

struct MappedCheckpoint::State {
  State(const Checkpoint& from, CachePolicy policy)
      : checkpoint(from), files(CheckpointAccess::state(checkpoint)), cache(policy) {
    mappings.reserve(files.shards.size());
    for (std::size_t i = 0; i < files.shards.size(); ++i)
      mappings.emplace_back(files.files[i], files.shards[i].file_size);
    if (cache == CachePolicy::drop) watch.emplace(checkpoint, mappings);
  }

  // Every page that the run has a byte of.
  std::span<std::byte> pages_of(const TensorInfo& run) const {
    if (run.size == 0) return {};
    check_range(files, run, 0, run.size);
    const Bytes begin = run.offset / page_size() * page_size();
    const std::span<const std::byte> shard = mappings[run.shard].bytes();
    const Bytes end = (run.offset + run.size + page_size() - 1) / page_size() * page_size();
    return {const_cast<std::byte*>(shard.data()) + begin, std::min<Bytes>(end, shard.size()) - begin};
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
  const std::span<std::byte> pages = state_->pages_of(tensor);
  syscalls().madvise(pages.data(), pages.size(), MADV_WILLNEED);
}

void MappedCheckpoint::bring(const TensorInfo& run, const CancelToken* cancel) const {
  const std::span<std::byte> pages = state_->pages_of(run);
  auto piece_at = [&](Bytes at) { return pages.subspan(at, std::min<Bytes>(kPiece, pages.size() - at)); };
  auto ask_for = [&](Bytes at) {
    if (at < pages.size()) syscalls().madvise(piece_at(at).data(), piece_at(at).size(), MADV_WILLNEED);
  };
  // What is asked for, and nothing around it.
  if (!pages.empty()) syscalls().madvise(pages.data(), pages.size(), MADV_RANDOM);
  ask_for(0);
  for (Bytes at = 0; at < pages.size(); at += kPiece) {
    if (cancel != nullptr && cancel->cancelled())
      throw Error(ErrorKind::interrupted, "interrupted while loading", "run again; nothing was written");
    ask_for(at + kPiece);
    // What the system refuses is read when it is looked at.
    syscalls().madvise(piece_at(at).data(), piece_at(at).size(), kPopulateForReading);
  }
}

void MappedCheckpoint::drop(const TensorInfo& run) const {
  if (state_->cache == CachePolicy::keep) return;
  const std::span<std::byte> pages = state_->pages_of(run);
  if (pages.empty()) return;
  // Pages that a mapping holds are not dropped.
  syscalls().madvise(pages.data(), pages.size(), MADV_DONTNEED);
  ::posix_fadvise(state_->files.files[run.shard].descriptor(),
                  static_cast<off_t>(run.offset / page_size() * page_size()),
                  static_cast<off_t>(pages.size()), POSIX_FADV_DONTNEED);
}

void MappedCheckpoint::let_go() {
  if (!state_->watch) return;
  state_->watch->drop();
  const std::lock_guard lock(state_->mutex);
  state_->seen.clear();  // what is looked at from now on is read again
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
