#pragma once
// What each phase needs, from shapes and headers alone: the same numbers stand in the plan and, beside the
// measured ones, in the report.  Activation sizes are estimates of the largest tensors alive at once.

#include "pipeline/model_set.h"
#include "pipeline/settings.h"

#include <string>
#include <vector>

namespace sluice::pipeline {

struct PhaseNeeds {
  std::string name;
  Bytes weights = 0;    // in the files
  Bytes anonymous = 0;  // beyond the program itself
};

struct NeedsRequest {
  const ModelSet& models;
  const TextEncoder* encoder = nullptr;  // nullptr: no text phase
  const Settings& settings;
  bool mapped = true;  // weights are computed from where they lie; false: each component is copied to memory
  bool sound = true;
  bool decode = true;
};

std::vector<PhaseNeeds> phase_needs(const NeedsRequest& request);

// Error(does_not_fit) naming the first phase that needs more than `available` bytes.
void require_fit(const std::vector<PhaseNeeds>& phases, Bytes available);

}  // namespace sluice::pipeline
