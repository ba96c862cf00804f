#pragma once
// What tells one file from another without reading all of it.

#include <sluice/checkpoint.h>

#include <filesystem>
#include <string>

namespace sluice::pipeline {

// XXH3-128 of pieces at even distances behind a shard's header: another training has the same header.
std::string sampled_checksum(const Shard& shard);

// Of pieces of any file and its size.  Error(io).
std::string sampled_checksum(const std::filesystem::path& file);

}  // namespace sluice::pipeline
