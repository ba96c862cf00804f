#pragma once
// What decides the bytes of a run's result: two runs with the same identity may go on from each other's work.
// Names of outputs, staging, read backend, cache and memory limit are no part of it.

#include "pipeline/prepared_run.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace sluice::pipeline {

// The settled request with its threads, the model's and the text encoder's files (headers, and samples of
// what is behind them: another training has the same header), injected values, versions and the CPU's
// instructions.  Reads 32 KiB a file.  Error(io).
nlohmann::json work_identity(const PreparedRun& run);

// What differs, one line each, "seed 42 there, 43 here"; empty if nothing does.
std::vector<std::string> identity_differences(const nlohmann::json& there, const nlohmann::json& here);

}  // namespace sluice::pipeline
