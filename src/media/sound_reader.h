#pragma once
// Sound from a file: WAV, FLAC, MP3, OGG, M4A, or the sound of a video.  Two channels: mono fills both, more
// are mixed down with ffmpeg's default matrix.  The rate is the file's own.

#include "media/stereo_wave.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::media {

struct SoundInfo {
  int sample_rate = 0;
  int channels = 0;          // of the file
  std::string codec;         // "pcm_s16le"
  std::int64_t samples = 0;  // a channel; an estimate where the container only knows a duration
  bool exact = false;        // whether it is no estimate

  double seconds() const { return static_cast<double>(samples) / sample_rate; }
};

// Decodes no more than libav does to describe the streams.  Error(bad_input) names the file: missing, no
// media file, no sound in it, empty, a rate outside 8 to 192 kHz, channels that nobody can mix down.
SoundInfo probe_sound(const std::filesystem::path& path);

struct Sound {
  int sample_rate = 0;
  // Integer samples of n bits are divided by 2^(n-1), so that they lie in [-1, 1); float and lossy ones are
  // as they are decoded and may lie beyond.
  std::vector<float> left, right;
  int stored_bits = 0;                   // of integer samples: 8 to 32; 0 for float and lossy ones
  std::vector<std::string> conversions;  // "mono in both channels", "5.1 mixed down to stereo"

  StereoWave wave() const { return {sample_rate, left, right, Pcm::exact}; }
};

// As probe_sound(), and Error(corrupt_file) where it is cut short or damaged, with the time; samples that are
// no finite numbers: Error(non_finite).  What the encoder of a lossy format put in front of the sound and
// behind it is left out, where the file says how much that is.  At most `most_seconds` are read: what is
// behind is left out.
Sound read_sound(const std::filesystem::path& path, double most_seconds);

}  // namespace sluice::media
