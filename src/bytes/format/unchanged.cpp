#include "bytes/format/unchanged.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <sys/stat.h>

namespace sluice::bytes {
namespace {

void require_unchanged(const Shard& shard, const std::filesystem::path& path, const File& open_file,
                       const FileIdentity& then) {
  const FileIdentity now = open_file.identity();
  const std::string file = shard.path.string();
  if (now.size < then.size) {
    throw Error(
        ErrorKind::corrupt_file,
        fmt::format("{}: the file shrank from {} to {} bytes while it was in use", file, then.size, now.size),
        std::string(kKeepUnchanged));
  }
  if (!(now == then)) {
    throw Error(ErrorKind::corrupt_file, fmt::format("{}: the file was written to while it was in use", file),
                std::string(kKeepUnchanged));
  }
  struct stat named {};
  // A name that is gone does no harm: the open file is what was checked.
  if (::stat(path.c_str(), &named) == 0 && (named.st_dev != then.device || named.st_ino != then.inode)) {
    throw Error(ErrorKind::corrupt_file,
                fmt::format("{}: the file was replaced by another while it was in use", file),
                std::string(kKeepUnchanged));
  }
}

}  // namespace

void require_unchanged(const CheckpointAccess::State& state) {
  for (std::size_t i = 0; i < state.shards.size(); ++i)
    require_unchanged(state.shards[i], state.absolute_paths[i], state.files[i], state.identities[i]);
}

}  // namespace sluice::bytes
