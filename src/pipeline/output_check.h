#pragma once
// What can be said about a run's outputs before it works: each can become a file, no two are the same, none
// is an input.

#include "base/output_name.h"

#include <sluice/sluice.h>

namespace sluice::pipeline {

// Error(usage / io) naming the path.  Looks at names and folders only; nothing is created that stays.
void check_outputs(const Outputs& outputs, const Request& request);

}  // namespace sluice::pipeline
