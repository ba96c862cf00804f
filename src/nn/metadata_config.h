#pragma once
// The configuration that a published file carries with its weights.

#include <sluice/checkpoint.h>

#include <nlohmann/json.hpp>

namespace sluice::nn {

// "config" of the metadata, which is JSON in a string.  Error(bad_input) when it is missing or no object.
nlohmann::json metadata_config(const Checkpoint& checkpoint);

}  // namespace sluice::nn
