#pragma once
// A WAV file: 16-bit PCM, stereo, at the wave's own rate and of its own length, rounded as the wave says.

#include "media/stereo_wave.h"

#include <filesystem>

namespace sluice::media {

// Appears under its name when complete.  Error(non_finite) for NaN, Error(io) names the file, Error(usage)
// beyond the format's 4 GiB.
void write_wav(const std::filesystem::path& target, const StereoWave& wave);

}  // namespace sluice::media
