#include "bytes/mapped_checkpoint.h"

#include "base/syscalls.h"
#include "bytes/cache_window.h"
#include "bytes/checkpoint_state.h"
#include "bytes/mapping.h"
#include "bytes/page_size.h"
#include "bytes/unchanged.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <atomic>
#include <vector>

namespace sluice::bytes {
namespace {

// Advice about the pages of [begin, end); what the system thinks of it does not matter.
void advise(const Mapping& mapping, Bytes begin, Bytes end, int advice) {
  begin -= begin % page_size();
  auto* address = const_cast<std::byte*>(mapping.bytes().data()) + begin;
  syscalls().madvise(address, end - begin, advice);
}

}  // namespace

struct MappedCheckpoint::State {
  State(const Checkpoint& from, CachePolicy policy)
      : checkpoint(from),
        files(CheckpointAccess::state(checkpoint)),
        cache(policy),
        seen(files.tensors.size()) {
    mappings.reserve(files.shards.size());  // windows hold on to them
    for (std::size_t i = 0; i < files.shards.size(); ++i)
      mappings.emplace_back(files.files[i], files.shards[i].file_size);
    watch();
  }

  ~State() {
    try {
      let_go();
    } catch (...) {
      // Without memory for its lists the page cache keeps what it has, from where the system takes it.
    }
  }

  // To a window, everything between the two is one long read of the whole file.
  void watch() {
    if (cache != CachePolicy::drop) return;
    for (std::size_t i = 0; i < mappings.size(); ++i) {
      const Mapping& mapping = mappings[i];
      auto unmap = [&mapping](Bytes begin, Bytes end) { advise(mapping, begin, end, MADV_DONTNEED); };
      windows.push_back(std::make_unique<CacheWindow>(files.files[i], unmap));
      windows.back()->about_to_read(0, files.shards[i].file_size);
    }
  }
  void let_go() {
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const Bytes size = files.shards[i].file_size;
      windows[i]->about_to_read(size - 1, 1);  // reading has reached the end
      windows[i]->has_read(0, size);
      windows[i]->has_read(size - 1, 1);
      windows[i]->finish();
    }
    windows.clear();
  }

  const Checkpoint checkpoint;  // keeps the files open
  const CheckpointAccess::State& files;
  const CachePolicy cache;
  std::vector<Mapping> mappings;                      // one a shard
  std::vector<std::unique_ptr<CacheWindow>> windows;  // of the same order, or none
  std::vector<std::atomic<bool>> seen;                // by tensor: its view was asked for
  std::atomic<Bytes> viewed = 0;
};

MappedCheckpoint::MappedCheckpoint(const Checkpoint& checkpoint, CachePolicy cache)
    : state_(std::make_unique<State>(checkpoint, cache)) {}

MappedCheckpoint::~MappedCheckpoint() = default;

std::span<const std::byte> MappedCheckpoint::view(const TensorInfo& tensor) const {
  check_range(state_->files, tensor, 0, tensor.size);
  const TensorInfo* known = state_->checkpoint.find(tensor.name);
  const auto index = static_cast<std::size_t>(known - state_->files.tensors.data());
  if (known != nullptr && !state_->seen[index].exchange(true)) state_->viewed += tensor.size;
  return state_->mappings[tensor.shard].bytes().subspan(tensor.offset, tensor.size);
}

void MappedCheckpoint::prefetch(const TensorInfo& tensor) const {
  if (state_->cache != CachePolicy::prefetch || tensor.size == 0) return;
  check_range(state_->files, tensor, 0, tensor.size);
  advise(state_->mappings[tensor.shard], tensor.offset, tensor.offset + tensor.size, MADV_WILLNEED);
}

void MappedCheckpoint::let_go() {
  state_->let_go();
  state_->watch();
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
  return state_->viewed;
}

}  // namespace sluice::bytes
