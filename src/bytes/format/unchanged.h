#pragma once
// A checkpoint's files are what they were when it was opened, or what was read from them cannot be trusted.

#include "bytes/format/checkpoint_state.h"

namespace sluice::bytes {

inline constexpr std::string_view kKeepUnchanged =
    "keep the file unchanged while it is in use, and run again";

// Error(corrupt_file) if a file shrank or was written to since, or if its name belongs to another file now.
void require_unchanged(const CheckpointAccess::State& state);

}  // namespace sluice::bytes
