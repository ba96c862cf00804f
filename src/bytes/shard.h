#pragma once
// One safetensors file, opened and checked, with the table of what is in it.

#include "base/file.h"

#include <sluice/checkpoint.h>

#include <vector>

namespace sluice::bytes {

struct OpenShard {
  File file;
  FileIdentity identity;  // when opened
  Shard info;
  std::vector<TensorInfo> tensors;  // sorted by name; shard is 0; offset counts from the start of the file
};

// Reads the header and nothing else.  Error(bad_input) for a file that is missing or something else,
// Error(corrupt_file) for one that breaks a rule.
OpenShard open_shard(const std::filesystem::path& path);

}  // namespace sluice::bytes
