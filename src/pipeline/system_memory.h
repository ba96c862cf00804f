#pragma once
// Memory as the kernel accounts for it.

#include <sluice/units.h>

#include <filesystem>

namespace sluice::pipeline {

Bytes anonymous_memory();  // of this process now

// What this process could still take: MemAvailable, or less where a control group (v2 or v1) limits it.  What
// the group holds as page cache counts as free.
Bytes available_memory();

// What is left of the limit of a control group, given the folder of its memory files; the greatest value
// without limit.
Bytes left_in_group(const std::filesystem::path& folder);

}  // namespace sluice::pipeline
