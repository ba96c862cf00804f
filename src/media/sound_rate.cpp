#include "media/sound_rate.h"

#include "media/libav.h"

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/mathematics.h>
#include <libswresample/swresample.h>
}

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

namespace sluice::media {
namespace {

constexpr std::int64_t kPiece = 1 << 16;  // samples

struct FreeResampler {
  void operator()(SwrContext* resampler) const { swr_free(&resampler); }
};
using ResamplerPtr = std::unique_ptr<SwrContext, FreeResampler>;

ResamplerPtr new_resampler(int from, int to) {
  AVChannelLayout stereo{};
  av_channel_layout_default(&stereo, 2);
  SwrContext* made = nullptr;
  check_libav(swr_alloc_set_opts2(&made, &stereo, AV_SAMPLE_FMT_FLTP, to, &stereo, AV_SAMPLE_FMT_FLTP, from,
                                  0, nullptr),
              "libswresample");
  ResamplerPtr resampler(made);
  check_libav(swr_init(resampler.get()), "libswresample");
  return resampler;
}

const std::uint8_t* bytes_at(std::span<const float> channel, std::int64_t at) {
  return reinterpret_cast<const std::uint8_t*>(channel.data() + at);
}

}  // namespace

ResampledSound resample_sound(const StereoWave& wave, int sample_rate) {
  const ResamplerPtr resampler = new_resampler(wave.sample_rate, sample_rate);
  const auto length = static_cast<std::size_t>(av_rescale(wave.samples(), sample_rate, wave.sample_rate));
  ResampledSound sound{.sample_rate = sample_rate, .left = {}, .right = {}};
  std::vector<float> left, right;
  auto convert = [&](const std::uint8_t** in, std::int64_t count) {
    const int room = swr_get_out_samples(resampler.get(), static_cast<int>(count));
    left.resize(static_cast<std::size_t>(check_libav(room, "libswresample")));
    right.resize(left.size());
    std::array<std::uint8_t*, 2> out = {reinterpret_cast<std::uint8_t*>(left.data()),
                                        reinterpret_cast<std::uint8_t*>(right.data())};
    const int made = swr_convert(resampler.get(), out.data(), room, in, static_cast<int>(count));
    check_libav(made, "libswresample");
    sound.left.insert(sound.left.end(), left.begin(), left.begin() + made);
    sound.right.insert(sound.right.end(), right.begin(), right.begin() + made);
  };
  for (std::int64_t at = 0; at < wave.samples(); at += kPiece) {
    std::array<const std::uint8_t*, 2> in = {bytes_at(wave.left, at), bytes_at(wave.right, at)};
    convert(in.data(), std::min(kPiece, wave.samples() - at));
  }
  convert(nullptr, 0);  // what the filter still holds
  sound.left.resize(length);
  sound.right.resize(length);
  return sound;
}

}  // namespace sluice::media
