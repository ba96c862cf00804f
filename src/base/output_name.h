#pragma once
// Names of outputs beside those of inputs: --overwrite must never cost a checkpoint.

#include <filesystem>
#include <vector>

namespace sluice {

// One name for all spellings of a path, whether or not there is a file.
std::filesystem::path full_name(const std::filesystem::path& path);

// "frames/" is "frames".
std::filesystem::path without_slash(const std::filesystem::path& path);

// Of full names.
bool lies_in(const std::filesystem::path& path, const std::filesystem::path& folder);

// Error(usage) if `output` is one of `inputs`, or a model file in one that is a folder.
void refuse_input_as_output(const std::filesystem::path& output,
                            const std::vector<std::filesystem::path>& inputs);

}  // namespace sluice
