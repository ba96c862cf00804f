#pragma once
// Sound as everybody here passes it on: two channels of f32 samples in about [-1, 1], as the vocoder makes
// them. A view: the samples belong to the caller and must outlive it.

#include <cstdint>
#include <span>
#include <string>

namespace sluice::media {

// How samples become 16-bit PCM.
enum class Pcm {
  reference,  // clip to [-1, 1], times 32767 in f32, truncated toward zero: as the reference exports
  exact,      // times 32768, to the nearest, clamped: what was read from 16-bit PCM is written as it was
};

struct StereoWave {
  int sample_rate = 48000;  // per second and channel
  std::span<const float> left;
  std::span<const float> right;  // as many as left
  Pcm pcm = Pcm::reference;

  std::int64_t samples() const { return static_cast<std::int64_t>(left.size()); }
};

// Error(internal) unless both channels are equally long and the rate is positive; Error(non_finite) that
// names the first sample which is NaN or infinite.
struct WaveName {  // in messages
  std::string what = "sound";
  std::string hint = {};
};
void check_wave(const StereoWave& wave, const WaveName& name = {});

std::int16_t to_pcm16(float sample, Pcm pcm = Pcm::reference);

}  // namespace sluice::media
