#pragma once
// What of a file the system holds in memory.

#include <sluice/units.h>

#include <filesystem>

namespace sluice::bytes {

// Bytes of the file in the page cache now, whoever brought them there; 0 where the system cannot say.
Bytes cached_bytes(const std::filesystem::path& path);

}  // namespace sluice::bytes
