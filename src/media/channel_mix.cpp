#include "media/channel_mix.h"

#include <sluice/error.h>

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/frame.h>
#include <libavutil/samplefmt.h>
#include <libswresample/swresample.h>
}

#include <array>
#include <cmath>
#include <utility>

namespace sluice::media {
namespace {

constexpr int kMostChannels = 64;  // of libswresample's matrices

std::string name_of(const AVChannelLayout& layout) {
  std::array<char, 128> name{};
  return av_channel_layout_describe(&layout, name.data(), name.size()) > 0 ? name.data() : "channels";
}

// Of a stored sample, in [-1, 1).
float value_of(std::uint8_t sample) {
  return (static_cast<float>(sample) - 128.0f) / 128.0f;
}
float value_of(std::int16_t sample) {
  return static_cast<float>(sample) / 32768.0f;
}
float value_of(std::int32_t sample) {  // rounded to the nearest f32; fewer bits lie at its top
  return static_cast<float>(sample) / 2147483648.0f;
}
float value_of(std::int64_t sample) {
  return static_cast<float>(static_cast<double>(sample) / 9223372036854775808.0);
}
float value_of(float sample) {
  return sample;
}
float value_of(double sample) {
  return static_cast<float>(sample);
}

template <typename T>
float at(const AVFrame& frame, int channel, int i) {
  if (av_sample_fmt_is_planar(static_cast<AVSampleFormat>(frame.format)))
    return value_of(reinterpret_cast<const T*>(frame.extended_data[channel])[i]);
  return value_of(
      reinterpret_cast<const T*>(frame.extended_data[0])[i * frame.ch_layout.nb_channels + channel]);
}

// A single weight of 1 leaves the sample's bits as they are.
template <typename T>
void append_mixed(const AVFrame& frame, const std::vector<double>& weights, std::vector<float>& to) {
  for (int i = 0; i < frame.nb_samples; ++i) {
    double sum = 0;
    for (std::size_t channel = 0; channel < weights.size(); ++channel) {
      if (weights[channel] != 0)
        sum += weights[channel] * static_cast<double>(at<T>(frame, static_cast<int>(channel), i));
    }
    to.push_back(static_cast<float>(sum));
  }
}

// append(value of the type that samples are stored in)
template <typename Append>
void in_format(AVSampleFormat format, const Append& append) {
  switch (av_get_packed_sample_fmt(format)) {
    case AV_SAMPLE_FMT_U8:
      return append(std::uint8_t{});
    case AV_SAMPLE_FMT_S16:
      return append(std::int16_t{});
    case AV_SAMPLE_FMT_S32:
      return append(std::int32_t{});
    case AV_SAMPLE_FMT_S64:
      return append(std::int64_t{});
    case AV_SAMPLE_FMT_FLT:
      return append(float{});
    case AV_SAMPLE_FMT_DBL:
      return append(double{});
    default:
      throw Error(ErrorKind::internal, "sound in an unknown sample format");
  }
}

}  // namespace

ChannelMix::ChannelMix(std::vector<double> left, std::vector<double> right, std::string conversion)
    : left_(std::move(left)), right_(std::move(right)), conversion_(std::move(conversion)) {}

std::optional<ChannelMix> ChannelMix::to_stereo(const AVChannelLayout& layout) {
  const int channels = layout.nb_channels;
  if (channels == 1) return ChannelMix({1}, {1}, "mono in both channels");
  if (channels == 2) return ChannelMix({1, 0}, {0, 1}, "");
  if (channels < 1 || channels > kMostChannels) return std::nullopt;
  AVChannelLayout from{}, to{};  // without memory of their own
  av_channel_layout_default(&to, 2);
  const bool named = layout.order != AV_CHANNEL_ORDER_UNSPEC;
  if (!named) av_channel_layout_default(&from, channels);
  const AVChannelLayout& speakers = named ? layout : from;
  if (speakers.order != AV_CHANNEL_ORDER_NATIVE) return std::nullopt;
  // Two rows are asked for; scaling goes over all that there can be.
  std::vector<double> matrix(std::size_t{kMostChannels} * kMostChannels);
  const double kMinus3dB = std::sqrt(0.5);
  if (swr_build_matrix2(&speakers, &to, kMinus3dB, kMinus3dB, 0, /*maxval=*/1, /*rematrix_volume=*/1,
                        matrix.data(), kMostChannels, AV_MATRIX_ENCODING_NONE, nullptr) < 0)
    return std::nullopt;
  const auto left = matrix.begin(), right = matrix.begin() + kMostChannels;
  return ChannelMix({left, left + channels}, {right, right + channels},
                    name_of(speakers) + " mixed down to stereo");
}

void ChannelMix::append(const AVFrame& frame, std::vector<float>& left, std::vector<float>& right) const {
  in_format(static_cast<AVSampleFormat>(frame.format), [&](auto value) {
    append_mixed<decltype(value)>(frame, left_, left);
    append_mixed<decltype(value)>(frame, right_, right);
  });
}

}  // namespace sluice::media
