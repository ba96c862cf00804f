#pragma once
// Sound as everybody here passes it on: two channels of f32 samples in about [-1, 1], as the vocoder makes
// them. A view: the samples belong to the caller and must outlive it.

#include <cstdint>
#include <span>

namespace sluice::media {

struct StereoWave {
  int sample_rate = 48000;  // per second and channel
  std::span<const float> left;
  std::span<const float> right;  // as many as left

  std::int64_t samples() const { return static_cast<std::int64_t>(left.size()); }
};

// Error(internal) unless both channels are equally long and the rate is positive; Error(non_finite) that
// names the first sample which is NaN or infinite.
void check_wave(const StereoWave& wave);

// One sample as 16-bit PCM: clip to [-1, 1], times 32767 in f32, truncated toward zero (as the reference
// exports).
std::int16_t to_pcm16(float sample);

}  // namespace sluice::media
