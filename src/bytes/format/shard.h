#pragma once
// One safetensors file, opened and checked, with the table of what is in it.

#include "base/file.h"

#include <sluice/checkpoint.h>

#include <span>
#include <string_view>
#include <vector>

namespace sluice::bytes {

// What a file says about itself, which may be anything, in two pure steps.

// From its first bytes (kImpostorBytes, or all there are): how many lie before the data, 8 + N, at most
// file_size.  Error(bad_input) for a file that is something else, Error(corrupt_file).
Bytes measure_header(std::span<const std::byte> first, Bytes file_size, const std::filesystem::path& path);

struct ShardTable {
  Shard info;
  std::vector<TensorInfo> tensors;  // sorted by name; shard is 0; offset counts from the start of the file
};

// From all bytes before the data.  Error(corrupt_file).
ShardTable read_table(std::string_view before_data, Bytes file_size, const std::filesystem::path& path);

struct OpenShard {
  File file;
  FileIdentity identity;  // when opened
  Shard info;
  std::vector<TensorInfo> tensors;  // as in ShardTable
};

// Reads the header and nothing else.  Error(bad_input) for a file that is missing or something else,
// Error(corrupt_file) for one that breaks a rule.
OpenShard open_shard(const std::filesystem::path& path);

}  // namespace sluice::bytes
