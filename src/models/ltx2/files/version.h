#pragma once
// Model versions: which ones this program reads, and that all shards are of one.

#include <sluice/checkpoint.h>

#include <string>
#include <string_view>

namespace sluice::ltx2 {

// The "model_version" of all shards, "" if none says.  Error(mismatch) naming both files and versions when
// shards differ, Error(bad_input) for a version this program does not read.
std::string checked_version(const Checkpoint& checkpoint);

// Whether parts of both versions belong together: 2.3.0 and 2.3.1 do, 2.3 and 2.4 do not.
bool same_release(std::string_view one, std::string_view other);

}  // namespace sluice::ltx2
