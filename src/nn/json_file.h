#pragma once
// A small JSON file beside a checkpoint: config.json, model_index.json.

#include <nlohmann/json.hpp>

#include <filesystem>

namespace sluice::nn {

// Error(bad_input) when it is missing, is something else (Git LFS pointer, HTML page, empty, …) or no JSON
// object.
nlohmann::json read_json_file(const std::filesystem::path& path);

}  // namespace sluice::nn
