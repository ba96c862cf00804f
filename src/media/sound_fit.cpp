#include "media/sound_fit.h"

#include <algorithm>

namespace sluice::media {

SoundFit fit_sound(std::int64_t given, int sample_rate, std::int64_t frames, Rational rate) {
  // 128 bits: frames * den * sample_rate passes 2^63 for hours of video at a rate such as 999983/1001.
  __extension__ using Wide = __int128;
  Wide ticks = Wide{frames} * rate.den * sample_rate;
  auto samples = static_cast<std::int64_t>((2 * ticks + rate.num) / (2 * Wide{rate.num}));
  return {.samples = samples,
          .silence = std::max<std::int64_t>(samples - given, 0),
          .cut = std::max<std::int64_t>(given - samples, 0)};
}

}  // namespace sluice::media
