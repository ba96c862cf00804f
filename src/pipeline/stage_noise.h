#pragma once
// The random numbers of a run: one stream for where stages begin, drawn in the order of the reference's
// pipelines, and one of its own for samplers that add noise in every step.  A draw can be had again at any
// time, so that a run can go on in the middle.
//
//   stage 1   video, then audio, in the latents' own shapes, as LTX2Pipeline and LTX2ImageToVideoPipeline
//             draw them for text and a first frame; where frames are given beside the grid both packed, the
//             video with theirs, as LTX2ConditionPipeline does.  A stream that is left out is not drawn.
//   stage 2   video, then audio, both packed, from the same stream.
//   steps     video, then audio, packed, from seed + 10000; those in the middle of steps from seed + 20000.

#include "pipeline/denoise.h"
#include "pipeline/settings.h"
#include "sampling/noise.h"

#include <cstdint>
#include <vector>

namespace sluice::pipeline {

// Where stage number `stage` (0, 1) begins, packed.
Latents stage_noise(const Settings& settings, ltx2::Modalities modalities, std::uint64_t seed,
                    std::size_t stage);

// Draws for one clip and one use, in the order of steps.
class StepNoise {
 public:
  StepNoise(std::uint64_t seed, NoiseUse use, const Latents& shapes);

  Latents draw();
  void skip(std::int64_t draws);

 private:
  sampling::NoiseSource source_;
  std::vector<std::int64_t> video_, audio_;
};

}  // namespace sluice::pipeline
