#pragma once
// AAC from a stereo wave, all at once: a clip's sound is small (192 kbit/s) and complete before the first
// frame is.

#include "media/libav.h"
#include "media/stereo_wave.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::media {

// The rate that sound of `sample_rate` has in an mp4: its own where AAC knows it (8 to 96 kHz), else 48 kHz.
int mp4_sample_rate(int sample_rate);

// What the encoder is given of a channel from `begin` on: its samples as they are, but for those beyond
// [-1, 1], which are clipped; silence behind its end.
void copy_samples(std::span<const float> channel, std::int64_t begin, std::span<float> to);

struct EncodedSound {
  CodecPtr codec;  // its time base is one sample
  std::vector<PacketPtr>
      packets;  // the first begins before 0 by the encoder's priming; the last is cut to `samples`
};

// Exactly `samples` samples: what the wave lacks is silence at the end, what it has beyond is left out.
// Error(usage) for a sampling rate that AAC does not know (mp4_sample_rate), Error(io) when the encoder is
// missing.
EncodedSound encode_sound(const StereoWave& wave, std::int64_t samples);

}  // namespace sluice::media
