#include "bytes/read_backend.h"

#include "base/text.h"
#include "bytes/checkpoint_state.h"
#include "bytes/chunks.h"
#include "bytes/mapping.h"
#include "bytes/unchanged.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <vector>

namespace sluice::bytes {
namespace {

// What both backends share: the checkpoint, the check of its files, the count.
class BackendBase : public ReadBackend {
 public:
  explicit BackendBase(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), state_(CheckpointAccess::state(checkpoint_)) {}

  void check() const override { require_unchanged(state_); }

  Bytes bytes_read() const override { return bytes_read_; }

 protected:
  void count(Bytes bytes) const { bytes_read_ += bytes; }

  const Checkpoint checkpoint_;  // keeps the files open
  const CheckpointAccess::State& state_;

 private:
  mutable std::atomic<Bytes> bytes_read_ = 0;
};

class PreadBackend final : public BackendBase {
 public:
  using BackendBase::BackendBase;

  BackendKind kind() const override { return BackendKind::pread; }
  std::span<const std::byte> view(const TensorInfo&) const override { return {}; }
  void read(const TensorInfo& tensor, Bytes skip, std::span<std::byte> to) const override {
    read_range(state_, tensor, skip, to);
    count(to.size());
  }
};

class MmapBackend final : public BackendBase {
 public:
  explicit MmapBackend(const Checkpoint& checkpoint) : BackendBase(checkpoint), seen_(state_.tensors.size()) {
    for (std::size_t i = 0; i < state_.shards.size(); ++i) {
      mappings_.emplace_back(state_.files[i], state_.shards[i].file_size);
    }
  }

  BackendKind kind() const override { return BackendKind::mmap; }

  std::span<const std::byte> view(const TensorInfo& tensor) const override {
    check_range(state_, tensor, 0, tensor.size);
    const TensorInfo* known = checkpoint_.find(tensor.name);
    bool first =
        known != nullptr && !seen_[static_cast<std::size_t>(known - state_.tensors.data())].exchange(true);
    if (first) count(tensor.size);
    return mappings_[tensor.shard].bytes().subspan(tensor.offset, tensor.size);
  }

  void read(const TensorInfo& tensor, Bytes skip, std::span<std::byte> to) const override {
    check_range(state_, tensor, skip, to.size());
    auto from = mappings_[tensor.shard].bytes().subspan(tensor.offset + skip, to.size());
    for_each_chunk(to.size(), [&](Bytes begin, Bytes size) {
      std::memcpy(to.data() + begin, from.data() + begin, size);
    });
    if (mappings_[tensor.shard].damaged()) {
      throw Error(ErrorKind::corrupt_file,
                  fmt::format("{}: tensor {}: the file shrank while it was mapped",
                              state_.shards[tensor.shard].path.string(), in_quotes(tensor.name)),
                  std::string(kKeepUnchanged));
    }
    count(to.size());
  }

  void check() const override {
    for (std::size_t i = 0; i < mappings_.size(); ++i) {
      if (!mappings_[i].damaged()) continue;
      throw Error(ErrorKind::corrupt_file,
                  fmt::format("{}: the file shrank while it was mapped: it had {} bytes, now it has {}",
                              state_.shards[i].path.string(), state_.identities[i].size,
                              state_.files[i].identity().size),
                  std::string(kKeepUnchanged));
    }
    BackendBase::check();
  }

 private:
  std::vector<Mapping> mappings_;                // one a shard
  mutable std::vector<std::atomic<bool>> seen_;  // by tensor: its view was asked for
};

}  // namespace

std::string_view to_string(BackendKind kind) {
  return kind == BackendKind::mmap ? "mmap" : "pread";
}

BackendKind parse_backend(std::string_view name) {
  for (BackendKind kind : {BackendKind::mmap, BackendKind::pread}) {
    if (name == to_string(kind)) return kind;
  }
  throw Error(ErrorKind::usage, fmt::format("{} is no read backend", in_quotes(name)), "give mmap or pread");
}

std::unique_ptr<ReadBackend> make_backend(BackendKind kind, const Checkpoint& checkpoint) {
  if (kind == BackendKind::mmap) return std::make_unique<MmapBackend>(checkpoint);
  return std::make_unique<PreadBackend>(checkpoint);
}

}  // namespace sluice::bytes
