#pragma once
// AAC from a stereo wave, all at once: a clip's sound is small (192 kbit/s) and complete before the first
// frame is.

#include "media/libav.h"
#include "media/stereo_wave.h"

#include <cstdint>
#include <vector>

namespace sluice::media {

struct EncodedSound {
  CodecPtr codec;  // its time base is one sample
  std::vector<PacketPtr>
      packets;  // the first begins before 0 by the encoder's priming; the last is cut to `samples`
};

// Exactly `samples` samples: what the wave lacks is silence at the end, what it has beyond is left out.
// Error(usage) for a sampling rate that AAC does not know, Error(io) when the encoder is missing.
EncodedSound encode_sound(const StereoWave& wave, std::int64_t samples);

}  // namespace sluice::media
