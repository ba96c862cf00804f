#include <sluice/checkpoint.h>

#include "base/text.h"
#include "bytes/format/checkpoint_state.h"
#include "bytes/format/gathered_errors.h"
#include "bytes/format/shard.h"
#include "bytes/format/shard_index.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace sluice {
namespace {

using State = CheckpointAccess::State;
using WantedName = std::function<bool(std::string_view)>;

constexpr std::size_t kProblemsShown = 8;

std::vector<bytes::OpenShard> open_shards(const std::filesystem::path& index_path,
                                          const bytes::ShardIndex& index) {
  std::vector<bytes::OpenShard> shards;
  std::vector<Error> problems;
  for (const std::string& name : index.shards) {
    std::filesystem::path path = index_path.parent_path() / name;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      problems.emplace_back(ErrorKind::bad_input, fmt::format("{}: the shard is missing", path.string()),
                            "fetch every file that the index names into one folder");
      continue;
    }
    try {
      shards.push_back(bytes::open_shard(path));
    } catch (const Error& error) {
      problems.push_back(error);
    }
  }
  bytes::throw_gathered(problems, fmt::format("{}: {} of {} shards cannot be used", index_path.string(),
                                              problems.size(), index.shards.size()));
  return shards;
}

const TensorInfo* find_by_name(const std::vector<TensorInfo>& sorted, std::string_view name) {
  auto found = std::ranges::lower_bound(sorted, name, {}, &TensorInfo::name);
  return found != sorted.end() && found->name == name ? &*found : nullptr;
}

// The tensors that the index names, each from the shard it names.
std::vector<TensorInfo> pick_tensors(const std::filesystem::path& index_path, const bytes::ShardIndex& index,
                                     const std::vector<bytes::OpenShard>& shards) {
  std::vector<TensorInfo> tensors;
  std::vector<std::string> absent;
  tensors.reserve(index.entries.size());
  for (const auto& entry : index.entries) {
    if (const TensorInfo* tensor = find_by_name(shards[entry.shard].tensors, entry.tensor)) {
      tensors.push_back(*tensor);
      tensors.back().shard = entry.shard;
    } else {
      absent.push_back(fmt::format("{} in {}", in_quotes(entry.tensor), index.shards[entry.shard]));
    }
  }
  if (!absent.empty()) {
    throw Error(ErrorKind::corrupt_file,
                fmt::format("{}: index names tensors that are not in their shards: {}", index_path.string(),
                            list_first(absent, kProblemsShown)),
                "index and shards are not of one set: fetch all of them again");
  }
  return tensors;
}

// Tensors of a shard that the index does not name there: a second copy must look like the first (if its shard
// is open), the rest is ignored.  `index`: of all shards, also of those that are not open.
std::vector<std::string> check_leftovers(const bytes::OpenShard& shard, std::size_t number,
                                         const std::vector<TensorInfo>& tensors,
                                         const std::vector<bytes::OpenShard>& shards,
                                         const bytes::ShardIndex& index) {
  std::vector<std::string> unnamed, copies;
  std::string file = shard.info.path.string();
  for (const TensorInfo& tensor : shard.tensors) {
    const TensorInfo* named = find_by_name(tensors, tensor.name);
    if (named != nullptr && named->shard == number) continue;
    if (named == nullptr) {
      const bool elsewhere =
          std::ranges::binary_search(index.entries, tensor.name, {}, &bytes::ShardIndex::Entry::tensor);
      (elsewhere ? copies : unnamed).push_back(in_quotes(tensor.name));
    } else if (named->dtype != tensor.dtype || named->shape != tensor.shape) {
      throw Error(ErrorKind::corrupt_file,
                  fmt::format("{}: tensor {} is {} {} here, but {} {} in {}, where the index places it", file,
                              in_quotes(tensor.name), dtype_name(tensor.dtype), format_shape(tensor.shape),
                              dtype_name(named->dtype), format_shape(named->shape),
                              shards[named->shard].info.path.filename().string()),
                  "index and shards are not of one set: fetch all of them again");
    } else {
      copies.push_back(in_quotes(tensor.name));
    }
  }
  std::vector<std::string> warnings;
  if (!unnamed.empty()) {
    warnings.push_back(
        fmt::format("{}: ignored, as the index does not name them: {}", file, list_first(unnamed, 3)));
  }
  if (!copies.empty()) {
    warnings.push_back(fmt::format("{}: ignored, as the index takes them from another shard: {}", file,
                                   list_first(copies, 3)));
  }
  return warnings;
}

void keep(State& state, std::vector<bytes::OpenShard> shards) {
  for (bytes::OpenShard& shard : shards) {
    state.metadata.insert(shard.info.metadata.begin(), shard.info.metadata.end());
    state.absolute_paths.push_back(std::filesystem::absolute(shard.info.path));
    state.shards.push_back(std::move(shard.info));
    state.files.push_back(std::move(shard.file));
    state.identities.push_back(shard.identity);
  }
}

void open_single(State& state, const std::filesystem::path& path) {
  std::vector<bytes::OpenShard> shards;
  shards.push_back(bytes::open_shard(path));
  state.tensors = std::move(shards.front().tensors);
  keep(state, std::move(shards));
}

void open_set(State& state, const std::filesystem::path& index_path, const WantedName& wanted) {
  const bytes::ShardIndex all = bytes::read_shard_index(index_path);
  const bytes::ShardIndex needed = wanted ? bytes::needed_shards(all, wanted) : all;
  std::vector<bytes::OpenShard> shards = open_shards(index_path, needed);
  state.tensors = pick_tensors(index_path, needed, shards);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    auto warnings = check_leftovers(shards[i], i, state.tensors, shards, all);
    state.warnings.insert(state.warnings.end(), warnings.begin(), warnings.end());
  }
  keep(state, std::move(shards));
}

}  // namespace

Checkpoint Checkpoint::open(const std::filesystem::path& path) {
  return open(path, nullptr);
}

Checkpoint Checkpoint::open(const std::filesystem::path& path,
                            const std::function<bool(std::string_view)>& wanted) {
  auto state = std::make_shared<State>();
  state->path = path;
  bytes::CheckpointFiles files = bytes::locate_checkpoint(path);
  if (files.index) {
    open_set(*state, *files.index, wanted);
  } else {
    open_single(*state, files.single);
  }
  return CheckpointAccess::make(std::move(state));
}

const std::filesystem::path& Checkpoint::path() const {
  return state_->path;
}
const std::vector<TensorInfo>& Checkpoint::tensors() const {
  return state_->tensors;
}
const std::vector<Shard>& Checkpoint::shards() const {
  return state_->shards;
}
const std::map<std::string, std::string>& Checkpoint::metadata() const {
  return state_->metadata;
}
const std::vector<std::string>& Checkpoint::warnings() const {
  return state_->warnings;
}

const TensorInfo* Checkpoint::find(std::string_view name) const {
  return find_by_name(state_->tensors, name);
}

void Checkpoint::read(const TensorInfo& info, std::span<std::byte> to) const {
  if (to.size() != info.size) {
    throw Error(ErrorKind::internal,
                fmt::format("{}: tensor {} has {} bytes, its destination {}", state_->path.string(),
                            in_quotes(info.name), info.size, to.size()));
  }
  bytes::read_range(*state_, info, 0, to);
}

}  // namespace sluice
