#pragma once
// Sound at another rate, for a container that cannot have its own: through libswresample, at once.

#include "media/stereo_wave.h"

#include <vector>

namespace sluice::media {

struct ResampledSound {
  int sample_rate = 0;
  std::vector<float> left, right;

  StereoWave wave() const { return {sample_rate, left, right}; }
};

// As long as before, to the nearest sample.
ResampledSound resample_sound(const StereoWave& wave, int sample_rate);

}  // namespace sluice::media
