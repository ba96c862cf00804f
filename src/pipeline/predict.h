#pragma once
// How long a planned run takes on this machine as it is now.

#include "pipeline/machine_speed.h"
#include "pipeline/run_plan.h"

namespace sluice::pipeline {

// Fills PhasePlan::seconds of every phase.  Reads a little of the checkpoint and computes a little, less than
// a second in all.
void predict(RunPlan& plan, const RunInputs& inputs, MachineSpeed& speed);

}  // namespace sluice::pipeline
