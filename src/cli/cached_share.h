#pragma once
// How much of a checkpoint's files the page cache holds, and how to change that.

#include <sluice/checkpoint.h>
#include <sluice/progress.h>

namespace sluice::cli {

double cached_share(const Checkpoint& checkpoint);  // 0 to 1

// Asks the system to let go of the files' pages, and of those it read ahead; returns the share that stayed.
double empty_cache(const Checkpoint& checkpoint);
// Reads the files once; returns the share that the page cache holds then.  Error(interrupted).
double fill_cache(const Checkpoint& checkpoint, const CancelToken& cancel);

}  // namespace sluice::cli
