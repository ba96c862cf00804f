#pragma once
// What can be said about a run's outputs before it works: each can become a file, no two are the same, none
// is an input.

#include <sluice/sluice.h>

#include <filesystem>
#include <vector>

namespace sluice::pipeline {

// Error(usage / io) naming the path.  Looks at names and folders only; nothing is created that stays.
void check_outputs(const Outputs& outputs, const Request& request);

// Error(usage) if `output` is one of `inputs`, or a model file in one that is a folder: --overwrite must
// never cost a checkpoint.
void refuse_input_as_output(const std::filesystem::path& output,
                            const std::vector<std::filesystem::path>& inputs);

}  // namespace sluice::pipeline
