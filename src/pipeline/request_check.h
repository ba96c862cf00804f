#pragma once
// What can be said about a request from its numbers alone: sizes the model cannot have, naming the nearest it
// can.

#include "sampling/latents.h"

#include <sluice/sluice.h>

#include <string>
#include <vector>

namespace sluice::pipeline {

// Error(usage) for prompts that are not UTF-8, scales that are no numbers and a count of steps that no
// schedule has.
void check_values(const Request& request);

// Error(usage) for a width or height that is no multiple of the autoencoder's factor, a frame count that is
// not 8k + 1, and numbers that no machine could serve.
void check_sizes(const Request& request, const sampling::VideoCompression& compression);

// Error(usage) where a request leaves the length open and what it gives (`frames`) lasts too long.
void check_given_length(const Request& request, std::int64_t frames);

// Sizes and rates that work but that the model was not trained for; one line each.
std::vector<std::string> unusual_sizes(const Request& request);

}  // namespace sluice::pipeline
