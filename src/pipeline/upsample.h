#pragma once
// Between the stages: the first one's latents become those of twice the size that the second refines.

#include "models/ltx2/upsampler/upsampler.h"
#include "models/ltx2/video_vae/latent_statistics.h"
#include "pipeline/backends.h"
#include "pipeline/denoise.h"
#include "pipeline/prepared_run.h"
#include "sampling/latents.h"

namespace sluice::pipeline {

struct UpsampleInputs {
  const ltx2::LatentUpsampler& model;
  weights::WeightSource& source;
  const ltx2::LatentStatistics& statistics;
  double scaling_factor = 1;
  sampling::VideoLatentShape from;
  double adain = 0, tone_map = 0;  // 0: off
  at::ScalarType dtype = at::kFloat;
};

// Packed and normalized; the video without tokens beside the grid, the sound as it is.
Latents upsample(const UpsampleInputs& inputs, const Latents& latents);

// With what a run has.
Latents upsample(const PreparedRun& run, Backends& backends, const Latents& latents);

}  // namespace sluice::pipeline
