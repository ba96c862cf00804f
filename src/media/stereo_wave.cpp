#include "media/stereo_wave.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace sluice::media {
namespace {

void check_channel(std::span<const float> channel, std::string_view name) {
  auto bad =
      std::find_if(channel.begin(), channel.end(), [](float sample) { return !std::isfinite(sample); });
  if (bad == channel.end()) return;
  throw Error(ErrorKind::non_finite,
              fmt::format("sound: sample {} of the {} channel is {}", bad - channel.begin(), name, *bad));
}

}  // namespace

void check_wave(const StereoWave& wave) {
  if (wave.sample_rate <= 0 || wave.left.size() != wave.right.size()) {
    throw Error(ErrorKind::internal, fmt::format("sound of {} and {} samples at {} Hz is no stereo wave",
                                                 wave.left.size(), wave.right.size(), wave.sample_rate));
  }
  check_channel(wave.left, "left");
  check_channel(wave.right, "right");
}

std::int16_t to_pcm16(float sample) {
  return static_cast<std::int16_t>(std::clamp(sample, -1.0f, 1.0f) * 32767.0f);
}

}  // namespace sluice::media
