#pragma once
// Checksums that `sluice verify --deep --json` printed earlier, to compare with.

#include "cli/verified.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace sluice::cli {

using ChecksumList = std::map<std::string, std::string>;  // by full_tensor_name()

// Error(bad_input) for a file that holds anything else.
ChecksumList read_checksums(const std::filesystem::path& path);

// Names tensors that differ, are missing, or are not in the list.
std::optional<Error> checksum_error(const Verified& verified, const ChecksumList& expected,
                                    const std::string& path);

}  // namespace sluice::cli
