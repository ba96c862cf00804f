#include "media/sound_encoder.h"

#include <sluice/error.h>
#include "media/encoders.h"

#include <fmt/format.h>
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/channel_layout.h>
}

#include <algorithm>
#include <array>

namespace sluice::media {
namespace {

constexpr std::int64_t kBitsPerSecond = 192'000;
constexpr std::int64_t kMostBitsPerFrame = 2 * 6144, kFrameSamples = 1024;  // of AAC in stereo
constexpr std::array kRates = {96'000, 88'200, 64'000, 48'000, 44'100, 32'000,
                               24'000, 22'050, 16'000, 12'000, 11'025, 8'000};
constexpr int kUsualRate = 48'000;

CodecPtr open_codec(int sample_rate) {
  const AVCodec& encoder = find_encoder(kSoundEncoder);
  CodecPtr codec = new_codec(&encoder);
  codec->sample_rate = sample_rate;
  codec->time_base = {1, sample_rate};
  codec->sample_fmt = AV_SAMPLE_FMT_FLTP;
  codec->bit_rate = std::min(kBitsPerSecond, kMostBitsPerFrame * sample_rate / kFrameSamples);
  codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_BITEXACT;
  av_channel_layout_default(&codec->ch_layout, 2);
  if (avcodec_open2(codec.get(), &encoder, nullptr) < 0) {
    throw Error(ErrorKind::usage, fmt::format("AAC cannot have stereo sound at {} Hz", sample_rate),
                fmt::format("resample to {} Hz", mp4_sample_rate(sample_rate)));
  }
  return codec;
}

std::span<float> plane(const AVFrame& frame, int channel) {
  return {reinterpret_cast<float*>(frame.data[channel]), static_cast<std::size_t>(frame.nb_samples)};
}

FramePtr make_frame(const AVCodecContext& codec, const StereoWave& wave, std::int64_t begin,
                    std::int64_t count) {
  FramePtr frame = new_frame();
  frame->format = codec.sample_fmt;
  frame->sample_rate = codec.sample_rate;
  frame->nb_samples = static_cast<int>(count);
  frame->pts = begin;
  check_libav(av_channel_layout_copy(&frame->ch_layout, &codec.ch_layout), "cannot allocate sound");
  check_libav(av_frame_get_buffer(frame.get(), 0), "cannot allocate sound");
  copy_samples(wave.left, begin, plane(*frame, 0));
  copy_samples(wave.right, begin, plane(*frame, 1));
  return frame;
}

void drain(AVCodecContext& codec, std::vector<PacketPtr>& packets) {
  for (;;) {
    PacketPtr packet = new_packet();
    int result = avcodec_receive_packet(&codec, packet.get());
    if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return;
    check_libav(result, "aac encoder");
    packets.push_back(std::move(packet));
  }
}

}  // namespace

int mp4_sample_rate(int sample_rate) {
  return std::find(kRates.begin(), kRates.end(), sample_rate) == kRates.end() ? kUsualRate : sample_rate;
}

void copy_samples(std::span<const float> channel, std::int64_t begin, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const auto at = static_cast<std::size_t>(begin) + i;
    to[i] = at < channel.size() ? std::clamp(channel[at], -1.0f, 1.0f) : 0.0f;
  }
}

EncodedSound encode_sound(const StereoWave& wave, std::int64_t samples) {
  check_wave(wave);
  EncodedSound sound{.codec = open_codec(wave.sample_rate), .packets = {}};
  AVCodecContext& codec = *sound.codec;
  for (std::int64_t begin = 0; begin < samples; begin += codec.frame_size) {
    FramePtr frame =
        make_frame(codec, wave, begin, std::min<std::int64_t>(codec.frame_size, samples - begin));
    check_libav(avcodec_send_frame(&codec, frame.get()), "aac encoder");
    drain(codec, sound.packets);
  }
  check_libav(avcodec_send_frame(&codec, nullptr), "aac encoder");
  drain(codec, sound.packets);
  return sound;
}

}  // namespace sluice::media
