#pragma once
// Carries a plan out: makes values in pieces and streams them into files, so that a checkpoint of any size
// needs a few MiB of memory.

#include "base/temporary_file.h"
#include "synth/plan.h"

#include <cstdint>
#include <functional>

namespace sluice::synth {

// Called after each file with its path and size.
using FileObserver = std::function<void(const std::filesystem::path&, Bytes)>;

// Everything that can be refused before the first byte: Error(usage) for targets that exist (weights or a
// folder with something in it) unless they may be overwritten, Error(does_not_fit) when the disk has not the
// space.
void check_plan(const Plan& plan, Existing existing);

// After check_plan().  Files appear under their names when complete.  Weights and indices of an earlier
// layout in the folders that are written to are removed first.
void write_plan(const Plan& plan, std::uint64_t seed, const FileObserver& observer = {});

}  // namespace sluice::synth
