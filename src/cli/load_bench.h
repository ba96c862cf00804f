#pragma once
// Measures every way of reading that is possible here, in new and in touched memory, with the file in the
// page cache and without, interleaved in shuffled order.

#include "cli/bench_figures.h"

#include <sluice/load.h>
#include <sluice/progress.h>

namespace sluice::cli {

// Needs memory for the file twice: Error(does_not_fit) if that is not there.  Other errors of load().
BenchFigures bench_load(const Checkpoint& checkpoint, unsigned rounds, Progress& progress,
                        const CancelToken& cancel);

}  // namespace sluice::cli
