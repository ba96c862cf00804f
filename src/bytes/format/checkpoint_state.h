#pragma once
// What a Checkpoint holds, for the files of this layer.

#include "base/file.h"

#include <sluice/checkpoint.h>

namespace sluice {

struct Checkpoint::State {
  std::filesystem::path path;
  std::vector<Shard> shards;
  std::vector<File> files;               // of the same order
  std::vector<FileIdentity> identities;  // of the same order: when opened
  // Of the same order: a relative path means something else once the process changes its folder.
  std::vector<std::filesystem::path> absolute_paths;
  std::vector<TensorInfo> tensors;  // sorted by name
  std::map<std::string, std::string> metadata;
  std::vector<std::string> warnings;
};

struct CheckpointAccess {
  using State = Checkpoint::State;
  static const State& state(const Checkpoint& checkpoint) { return *checkpoint.state_; }
  static Checkpoint make(std::shared_ptr<const State> state) {
    Checkpoint checkpoint;
    checkpoint.state_ = std::move(state);
    return checkpoint;
  }
};

namespace bytes {

// Error(internal) unless [skip, skip + size) lies inside a tensor of this checkpoint.
void check_range(const CheckpointAccess::State& state, const TensorInfo& tensor, Bytes skip, Bytes size);

// Fills `to` from the tensor's bytes by pread; large ranges with several threads.
void read_range(const CheckpointAccess::State& state, const TensorInfo& tensor, Bytes skip,
                std::span<std::byte> to);

}  // namespace bytes
}  // namespace sluice
