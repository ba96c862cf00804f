#include "sound_files.h"

#include "media/libav.h"
#include "world.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/samplefmt.h>
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

namespace sluice::media {
namespace {

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return text;
}

// A format with the loudspeakers' names, and the rest of the identifier that says "PCM" or "float".
std::string extension(const WavFile& wav) {
  const std::string rest("\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71", 14);
  return little_endian(22, 2) + little_endian(static_cast<std::uint64_t>(wav.bits), 2) +
         little_endian(0x3f, 4) + little_endian(wav.is_float ? 3 : 1, 2) + rest;
}

void store(AVFrame& frame, int channel, int i, float value) {
  const auto format = static_cast<AVSampleFormat>(frame.format);
  const bool planar = av_sample_fmt_is_planar(format) != 0;
  std::uint8_t* plane = frame.extended_data[planar ? channel : 0];
  const int at = planar ? i : i * frame.ch_layout.nb_channels + channel;
  switch (av_get_packed_sample_fmt(format)) {
    case AV_SAMPLE_FMT_S16:
      reinterpret_cast<std::int16_t*>(plane)[at] = static_cast<std::int16_t>(std::lrint(value * 32768));
      break;
    case AV_SAMPLE_FMT_S32:
      reinterpret_cast<std::int32_t*>(plane)[at] =
          static_cast<std::int32_t>(std::llrint(static_cast<double>(value) * 8388608)) * 256;
      break;
    default:
      reinterpret_cast<float*>(plane)[at] = value;
  }
}

class SoundFileWriter {
 public:
  SoundFileWriter(const std::filesystem::path& path, const SoundFormat& format, int channels) {
    check_libav(avformat_alloc_output_context2(&muxer_, nullptr, nullptr, path.c_str()), "muxer");
    const AVCodec* encoder = avcodec_find_encoder_by_name(format.encoder.c_str());
    if (encoder == nullptr) throw Error(ErrorKind::io, "no encoder " + format.encoder);
    codec_ = new_codec(encoder);
    codec_->sample_rate = format.sample_rate;
    codec_->time_base = {1, format.sample_rate};
    codec_->sample_fmt = av_get_sample_fmt(format.sample_format.c_str());
    if (av_get_packed_sample_fmt(codec_->sample_fmt) == AV_SAMPLE_FMT_S32) codec_->bits_per_raw_sample = 24;
    codec_->bit_rate = 192'000;
    av_channel_layout_default(&codec_->ch_layout, channels);
    if (muxer_->oformat->flags & AVFMT_GLOBALHEADER) codec_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    check_libav(avcodec_open2(codec_.get(), encoder, nullptr), format.encoder);
    stream_ = avformat_new_stream(muxer_, nullptr);
    stream_->time_base = codec_->time_base;
    check_libav(avcodec_parameters_from_context(stream_->codecpar, codec_.get()), "stream");
    check_libav(avio_open(&muxer_->pb, path.c_str(), AVIO_FLAG_WRITE), path);
    Dictionary settings;
    settings.set("movflags", "+faststart");
    check_libav(avformat_write_header(muxer_, settings.address()), "header");
  }
  ~SoundFileWriter() {
    avio_closep(&muxer_->pb);
    avformat_free_context(muxer_);
  }
  SoundFileWriter(const SoundFileWriter&) = delete;
  SoundFileWriter& operator=(const SoundFileWriter&) = delete;

  void write(const Channels& channels) {
    const auto all = static_cast<int>(channels.front().size());
    const int step = codec_->frame_size > 0 ? codec_->frame_size : 1024;
    for (int begin = 0; begin < all; begin += step) send(channels, begin, std::min(step, all - begin));
    drain(nullptr);
    check_libav(av_write_trailer(muxer_), "trailer");
  }

 private:
  void send(const Channels& channels, int begin, int count) {
    FramePtr frame = new_frame();
    frame->format = codec_->sample_fmt;
    frame->sample_rate = codec_->sample_rate;
    frame->nb_samples = count;
    frame->pts = begin;
    check_libav(av_channel_layout_copy(&frame->ch_layout, &codec_->ch_layout), "frame");
    check_libav(av_frame_get_buffer(frame.get(), 0), "frame");
    for (std::size_t channel = 0; channel < channels.size(); ++channel) {
      for (int i = 0; i < count; ++i)
        store(*frame, static_cast<int>(channel), i, channels[channel][static_cast<std::size_t>(begin + i)]);
    }
    drain(frame.get());
  }

  void drain(const AVFrame* frame) {
    check_libav(avcodec_send_frame(codec_.get(), frame), "encode");
    PacketPtr packet = new_packet();
    while (avcodec_receive_packet(codec_.get(), packet.get()) >= 0) {
      av_packet_rescale_ts(packet.get(), codec_->time_base, stream_->time_base);
      check_libav(av_write_frame(muxer_, packet.get()), "write");
      av_packet_unref(packet.get());
    }
  }

  AVFormatContext* muxer_ = nullptr;
  CodecPtr codec_;
  AVStream* stream_ = nullptr;
};

}  // namespace

std::string WavFile::bytes() const {
  const auto frame = static_cast<std::uint64_t>(channels * bits / 8);
  const auto size = told < 0 ? samples.size() : static_cast<std::uint64_t>(told);
  const std::uint64_t tag = extensible ? 0xfffe : is_float ? 3 : 1;
  const auto rate = static_cast<std::uint64_t>(sample_rate);
  const std::string format = little_endian(tag, 2) + little_endian(static_cast<std::uint64_t>(channels), 2) +
                             little_endian(rate, 4) + little_endian(rate * frame, 4) +
                             little_endian(frame, 2) + little_endian(static_cast<std::uint64_t>(bits), 2) +
                             (extensible ? extension(*this) : "");
  const std::string rest =
      "WAVEfmt " + little_endian(format.size(), 4) + format + "data" + little_endian(size, 4) + samples;
  return "RIFF" + little_endian(std::min<std::uint64_t>(rest.size() - samples.size() + size, 0xffffffff), 4) +
         rest;
}

std::string stored_samples(const std::vector<std::int64_t>& samples, int bits) {
  std::string text;
  for (std::int64_t sample : samples)
    text += little_endian(static_cast<std::uint64_t>(bits == 8 ? sample + 128 : sample), bits / 8);
  return text;
}

std::string stored_floats(const std::vector<float>& samples) {
  std::string text;
  for (float sample : samples) {
    std::uint32_t bits;
    std::memcpy(&bits, &sample, sizeof bits);
    text += little_endian(bits, 4);
  }
  return text;
}

Channels soft_noise(std::size_t samples) {
  std::mt19937 random(3);
  std::normal_distribution<float> values(0, 0.3f);
  Channels channels(2, std::vector<float>(samples));
  for (auto& channel : channels) {
    float value = 0;
    for (float& sample : channel) sample = value += 0.3f * (values(random) - value);
  }
  return channels;
}

int delay_of(const std::vector<float>& got, const std::vector<float>& want) {
  constexpr int kMost = 1500;
  int best = 0;
  double most = -1;
  for (int delay = -kMost; delay <= kMost; ++delay) {
    double product = 0;
    for (std::size_t i = kMost; i + kMost < want.size(); ++i)
      product += static_cast<double>(want[i]) * got[i + kMost + static_cast<std::size_t>(delay) - kMost];
    if (product > most) most = product, best = delay;
  }
  return best;
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void encode_sound_file(const std::filesystem::path& path, const SoundFormat& format,
                       const Channels& channels) {
  redirect_libav_log();
  SoundFileWriter(path, format, static_cast<int>(channels.size())).write(channels);
}

}  // namespace sluice::media
