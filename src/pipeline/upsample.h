#pragma once
// Between the stages: the first one's latents become those of twice the size that the second refines.

#include "pipeline/backends.h"
#include "pipeline/denoise.h"
#include "pipeline/prepared_run.h"

namespace sluice::pipeline {

// Packed and normalized; the video without tokens beside the grid, the sound as it is.
Latents upsample(const PreparedRun& run, Backends& backends, const Latents& latents);

}  // namespace sluice::pipeline
