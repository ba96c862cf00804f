#pragma once
// Which files a run reads and writes: with several clips each has its own, by its seed.

#include <sluice/sluice.h>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace sluice::pipeline {

// Of clip number 0, 1, …; seeds behind the largest one begin at 0 again.
std::uint64_t clip_seed(const Request& request, std::size_t clip);

// `outputs` with the names of one clip; "out-43.mp4" where there are several.
Outputs clip_outputs(const Outputs& outputs, const Request& request, std::size_t clip);

// Of all clips, and the report.
std::vector<std::filesystem::path> output_files(const Outputs& outputs, const Request& request);
std::vector<std::filesystem::path> frame_folders(const Outputs& outputs, const Request& request);

// Everything a request names.
std::vector<std::filesystem::path> input_files(const Request& request);

}  // namespace sluice::pipeline
