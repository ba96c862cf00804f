#pragma once
// Model versions: which ones this program reads, and that all shards are of one.

#include <sluice/checkpoint.h>

#include <string>

namespace sluice::ltx2 {

// The "model_version" of all shards, "" if none says.  Error(mismatch) naming both files and versions when
// shards differ, Error(bad_input) for a version this program does not read.
std::string checked_version(const Checkpoint& checkpoint);

}  // namespace sluice::ltx2
