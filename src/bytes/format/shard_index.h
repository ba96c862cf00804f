#pragma once
// Which files make up a checkpoint, and which tensor lies in which of them: folders and index.json.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::bytes {

// `path` is a file, an index or a folder.
struct CheckpointFiles {
  std::optional<std::filesystem::path> index;  // a *.safetensors.index.json
  std::filesystem::path single;                // the only file, where there is no index
};

// Error(bad_input) where the path is missing or the folder holds no checkpoint, or more than one.
CheckpointFiles locate_checkpoint(const std::filesystem::path& path);

struct ShardIndex {
  struct Entry {
    std::string tensor;
    std::size_t shard;  // index into `shards`
  };
  std::vector<std::string> shards;  // file names, sorted, unique
  std::vector<Entry> entries;       // sorted by tensor, unique
};

// Error(bad_input / corrupt_file) for what is no index, names a tensor twice, or names a file outside the
// folder.
ShardIndex parse_shard_index(std::string_view json, std::string_view file);
ShardIndex read_shard_index(const std::filesystem::path& path);

// The index of the shards that hold a wanted tensor, with all that they hold.
ShardIndex needed_shards(const ShardIndex& index, const std::function<bool(std::string_view)>& wanted);

}  // namespace sluice::bytes
