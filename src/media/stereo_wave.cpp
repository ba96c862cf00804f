#include "media/stereo_wave.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace sluice::media {
namespace {

void check_channel(std::span<const float> channel, std::string_view side, const WaveName& name) {
  auto bad =
      std::find_if(channel.begin(), channel.end(), [](float sample) { return !std::isfinite(sample); });
  if (bad == channel.end()) return;
  throw Error(
      ErrorKind::non_finite,
      fmt::format("{}: sample {} of the {} channel is {}", name.what, bad - channel.begin(), side, *bad),
      name.hint);
}

}  // namespace

void check_wave(const StereoWave& wave, const WaveName& name) {
  if (wave.sample_rate <= 0 || wave.left.size() != wave.right.size()) {
    throw Error(ErrorKind::internal,
                fmt::format("{} of {} and {} samples at {} Hz is no stereo wave", name.what, wave.left.size(),
                            wave.right.size(), wave.sample_rate));
  }
  check_channel(wave.left, "left", name);
  check_channel(wave.right, "right", name);
}

std::int16_t to_pcm16(float sample, Pcm pcm) {
  if (pcm == Pcm::reference) return static_cast<std::int16_t>(std::clamp(sample, -1.0f, 1.0f) * 32767.0f);
  return static_cast<std::int16_t>(std::lrint(std::clamp(sample * 32768.0f, -32768.0f, 32767.0f)));
}

}  // namespace sluice::media
