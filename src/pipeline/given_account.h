#pragma once
// What was given beside words, as a run tells of it: names without folders, fingerprints, places, strengths.

#include "pipeline/prepared_run.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace sluice::pipeline {

// Into the settled request: "frames_given", "audio", "retake", "adapters", "two_stage" and what belongs to
// them; nothing for what was not given.
void add_given(const PreparedRun& run, nlohmann::json& request);

// The same out of a video's tag into a request: all but the files.
void take_given(const nlohmann::json& request, Request& into);

// Files that have to be given again, each with its flag.
std::vector<GivenAgain> files_given(const nlohmann::json& request);

// For reports: sizes, rates and lengths as they were found, what was converted, cut or turned.
nlohmann::json media_json(const PreparedRun& run);

}  // namespace sluice::pipeline
