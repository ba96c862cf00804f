#pragma once
// What of a file the system holds in memory.

#include "base/file.h"

#include <filesystem>

namespace sluice::bytes {

// Bytes of the file in the page cache now, whoever brought them there; 0 where the system cannot say.  An
// estimate from samples for files that are somebody else's (see residency.h).
Bytes cached_bytes(const File& file);
Bytes cached_bytes(const std::filesystem::path& path);

}  // namespace sluice::bytes
