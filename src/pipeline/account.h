#pragma once
// How a run gives account of itself: the request as it was settled, for report and metadata, and back.

#include "pipeline/given_account.h"
#include "pipeline/prepared_run.h"

#include <sluice/sluice.h>

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

namespace sluice::pipeline {

// Everything that decides the result, settled: prompt, sizes, seed, sigmas, guidance, dtype, threads.  No
// paths.
nlohmann::json settled_request(const PreparedRun& run);

// {"sluice": …, "libtorch": …}
nlohmann::json versions();

// File name -> XXH3-128 of its header, and the model's version.
nlohmann::json fingerprints(const ModelSet& models, const TextEncoder* encoder);

// The mp4's tags: description (the prompt), comment (a line for people), sluice (the above as JSON).
std::map<std::string, std::string> video_tags(const nlohmann::json& request,
                                              const nlohmann::json& fingerprints);

// From the "sluice" tag.  Error(bad_input) if `where` has none or it is damaged.
Request request_from_tags(const std::map<std::string, std::string>& tags, const std::string& where);
std::vector<GivenAgain> files_from_tags(const std::map<std::string, std::string>& tags,
                                        const std::string& where);

}  // namespace sluice::pipeline
