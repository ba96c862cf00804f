#pragma once
// From prompts and what is given to clean latents: contexts, conditions, one or two stages of denoising with
// an upsampler between them; from wherever an earlier run got to.

#include "pipeline/phase_runner.h"
#include "pipeline/trace.h"
#include "pipeline/work_dir.h"

#include <vector>

namespace sluice::pipeline {

// The latents of every clip of the run.
std::vector<ClipLatents> denoised_clips(PhaseRunner& runner, WorkDir& work);

}  // namespace sluice::pipeline
