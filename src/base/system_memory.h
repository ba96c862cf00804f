#pragma once
// Memory as the kernel accounts for it; what is available is in <sluice/memory.h>.

#include <sluice/units.h>

#include <filesystem>
#include <string>

namespace sluice {

Bytes anonymous_memory();  // of this process now

// What is left of the limit of a control group (v2 or v1), given the folder of its memory files; the greatest
// value without limit.  What the group holds as page cache of files counts as free, tmpfs does not.
Bytes left_in_group(const std::filesystem::path& folder);

// "address space limit is 4.0 GiB", or that there is none (ulimit -v): why the system may refuse a mapping.
std::string address_space_limit();

}  // namespace sluice
