#pragma once
// How sound is made exactly as long as the picture: silence is added at the end, or what is too long is cut
// there. Sound is never stretched and the picture is never touched.  Numbers only, so that a plan and a
// warning can tell them.

#include <sluice/units.h>

#include <cstdint>

namespace sluice::media {

struct SoundFit {
  std::int64_t samples = 0;  // per channel in the file: frames / rate in samples, to the nearest
  std::int64_t silence = 0;  // of these, added at the end
  std::int64_t cut = 0;      // given, but left out at the end

  bool operator==(const SoundFit&) const = default;
};

// `given` samples at `sample_rate` beside `frames` frames at `rate` (a video of F frames lasts F / rate
// seconds).
SoundFit fit_sound(std::int64_t given, int sample_rate, std::int64_t frames, Rational rate);

}  // namespace sluice::media
