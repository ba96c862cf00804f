#pragma once
// Problems of several files as one error.

#include <sluice/error.h>

#include <string>
#include <vector>

namespace sluice::bytes {

// Nothing if there is none; the error itself if there is one; else one with a line for each below `summary`
// ("model.safetensors.index.json: 3 of 12 shards cannot be used").
void throw_gathered(const std::vector<Error>& errors, const std::string& summary);

}  // namespace sluice::bytes
