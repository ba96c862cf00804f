#include "media/sound_reader.h"

#include <sluice/error.h>
#include "base/file.h"
#include "media/channel_mix.h"
#include "media/cut_end.h"
#include "media/demuxer.h"

#include <fmt/format.h>
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace sluice::media {
namespace {

constexpr int kLowestRate = 8000, kHighestRate = 192'000;
// A header may claim anything: what is reserved before it is there.
constexpr std::int64_t kMostReserved = std::int64_t{1} << 24;
// Samples that encoders put around the sound, and containers count or do not: two frames of AAC, more than
// MP3 and Opus have.
constexpr std::int64_t kPadding = 4096;

constexpr const char* kGiveSound = "give a file with sound: WAV, FLAC, MP3, OGG, M4A, or a video with sound";
constexpr const char* kFetchAgain = "fetch or export the file again";

Error bad_input(const std::filesystem::path& path, const std::string& what, const std::string& hint) {
  return {ErrorKind::bad_input, fmt::format("{}: {}", path.string(), what), hint};
}

Error no_samples(const std::filesystem::path& path) {
  return bad_input(path, "its sound has no samples", kGiveSound);
}

bool is_lossless(AVCodecID codec) {
  const AVCodecDescriptor* descriptor = avcodec_descriptor_get(codec);
  return descriptor != nullptr && (descriptor->props & AV_CODEC_PROP_LOSSLESS) != 0;
}

// Whether the length that is told is libav's guess from the file's size.
bool is_guessed(const AVFormatContext& demuxer) {
  return demuxer.duration <= 0 || demuxer.duration_estimation_method == AVFMT_DURATION_FROM_BITRATE;
}

// Whether the header counts samples, not time.
bool counts_samples(const AVFormatContext& demuxer, const AVStream& stream) {
  const AVCodecID codec = stream.codecpar->codec_id;
  return !is_guessed(demuxer) && stream.duration > 0 &&
         (codec == AV_CODEC_ID_FLAC || av_get_exact_bits_per_sample(codec) > 0);
}

// How much sound there is, in samples; 0: the file does not say.
std::int64_t samples_of(const AVFormatContext& demuxer, const AVStream& stream) {
  const AVRational sample = {1, stream.codecpar->sample_rate};
  if (stream.duration > 0) return av_rescale_q(stream.duration, stream.time_base, sample);
  return demuxer.duration > 0 ? av_rescale_q(demuxer.duration, AV_TIME_BASE_Q, sample) : 0;
}

// Whether the length that is told is this stream's own, so that an earlier end means that something is
// missing.  Matroska has one length for all streams.
bool tells_length(const AVFormatContext& demuxer, const AVStream& stream) {
  const std::string_view name = demuxer.iformat->name;
  if (is_guessed(demuxer)) return false;
  if (name.starts_with("matroska,")) return demuxer.nb_streams == 1;
  return stream.duration > 0 && (name.starts_with("mov,") || name == "mp3" || name == "ogg");
}

// Where the file does not say how much sound there is: all packets, one after the other.
std::int64_t count_samples(AVFormatContext& demuxer, const AVStream& stream) {
  std::int64_t ticks = 0;
  PacketPtr packet = new_packet();
  while (av_read_frame(&demuxer, packet.get()) >= 0) {
    if (packet->stream_index == stream.index) ticks += packet->duration;
    av_packet_unref(packet.get());
  }
  return av_rescale_q(ticks, stream.time_base, {1, stream.codecpar->sample_rate});
}

// A file of sound, opened and looked at.
class SoundFile {
 public:
  explicit SoundFile(const std::filesystem::path& path) : path_(path) {
    if (File::open(path).identity().size == 0) throw bad_input(path, "is empty", kGiveSound);
    demuxer_ = open_media_with_streams(path);
    const int index = av_find_best_stream(demuxer_.get(), AVMEDIA_TYPE_AUDIO, -1, -1, nullptr, 0);
    if (index < 0) throw bad_input(path, "has no sound", kGiveSound);
    for (unsigned i = 0; i < demuxer_->nb_streams; ++i)
      demuxer_->streams[i]->discard = static_cast<int>(i) == index ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    stream_ = demuxer_->streams[index];
    check();
  }

  const std::filesystem::path& path() const { return path_; }
  AVFormatContext& demuxer() const { return *demuxer_; }
  const AVStream& stream() const { return *stream_; }
  const AVCodecParameters& parameters() const { return *stream_->codecpar; }

  ChannelMix mix() const {
    auto mix = ChannelMix::to_stereo(parameters().ch_layout);
    if (!mix)
      throw bad_input(path_,
                      fmt::format("nobody can mix its {} channels down", parameters().ch_layout.nb_channels),
                      "mix it down to stereo");
    return *std::move(mix);
  }

  SoundInfo info() const {
    return {.sample_rate = parameters().sample_rate,
            .channels = parameters().ch_layout.nb_channels,
            .codec = avcodec_get_name(parameters().codec_id),
            .samples = samples_of(*demuxer_, *stream_),
            .exact = counts_samples(*demuxer_, *stream_)};
  }

 private:
  void check() const {
    const int rate = parameters().sample_rate;
    if (rate < kLowestRate || rate > kHighestRate)
      throw bad_input(path_,
                      fmt::format("sound at {} Hz, outside {} to {} Hz", rate, kLowestRate, kHighestRate),
                      "convert it to 48000 Hz");
    mix();
  }

  std::filesystem::path path_;
  DemuxerPtr demuxer_;
  const AVStream* stream_ = nullptr;  // the demuxer's
};

// Decodes packet by packet; gathers what comes out.
class SoundDecoder {
 public:
  SoundDecoder(const SoundFile& file, double most_seconds)
      : file_(file),
        mix_(file.mix()),
        codec_(open_decoder(file.stream(), file.path())),
        most_(static_cast<std::int64_t>(
            std::llrint(std::min(most_seconds, 1e9) * file.parameters().sample_rate))) {
    const auto reserved = static_cast<std::size_t>(std::min({most_, file.info().samples, kMostReserved}));
    sound_.left.reserve(reserved);
    sound_.right.reserve(reserved);
    sound_.sample_rate = file.parameters().sample_rate;
    if (!mix_.conversion().empty()) sound_.conversions.push_back(mix_.conversion());
    // Checksums of frames, where the format has them.
    if (is_lossless(codec_->codec_id)) codec_->err_recognition = AV_EF_CRCCHECK | AV_EF_EXPLODE;
  }

  Sound run() {
    PacketPtr packet = new_packet();
    while (!full()) {
      const int result = av_read_frame(&file_.demuxer(), packet.get());
      if (result == AVERROR_EOF) return ended();
      if (result < 0) throw broken("cannot be read on");
      if (packet->stream_index == file_.stream().index) {
        if (is_incomplete(*packet)) throw broken("is cut short or damaged");
        decode(packet.get());
      }
      av_packet_unref(packet.get());
    }
    return cut();
  }

 private:
  bool full() const { return decoded() >= most_; }
  std::int64_t decoded() const { return static_cast<std::int64_t>(sound_.left.size()); }

  // The last packet of a WAV file whose size nobody knows is shorter than the others.
  bool is_incomplete(const AVPacket& packet) const {
    return (packet.flags & AV_PKT_FLAG_CORRUPT) != 0 &&
           std::string_view(file_.demuxer().iformat->name) != "wav";
  }

  void decode(const AVPacket* packet) {
    if (avcodec_send_packet(codec_.get(), packet) < 0) throw broken("is damaged");
    FramePtr frame = new_frame();
    for (;;) {
      const int result = avcodec_receive_frame(codec_.get(), frame.get());
      if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return;
      if (result < 0) throw broken("is damaged");
      take(*frame);
    }
  }

  void take(const AVFrame& frame) {
    if (frame.sample_rate != sound_.sample_rate || frame.ch_layout.nb_channels != mix_.channels())
      throw bad_input(file_.path(),
                      fmt::format("goes on with {} channels at {} Hz after {:.3f} s of {} at {} Hz",
                                  frame.ch_layout.nb_channels, frame.sample_rate, seconds(), mix_.channels(),
                                  sound_.sample_rate),
                      "convert it to one rate and number of channels");
    if (is_lossless(codec_->codec_id)) sound_.stored_bits = bits_of(frame);
    mix_.append(frame, sound_.left, sound_.right);
  }

  // 0 for samples that are no integers.
  int bits_of(const AVFrame& frame) const {
    const auto format = av_get_packed_sample_fmt(static_cast<AVSampleFormat>(frame.format));
    if (format == AV_SAMPLE_FMT_FLT || format == AV_SAMPLE_FMT_DBL) return 0;
    const int whole = 8 * av_get_bytes_per_sample(format);
    return codec_->bits_per_raw_sample > 0 ? std::min(codec_->bits_per_raw_sample, whole) : whole;
  }

  Sound ended() {
    decode(nullptr);
    check_length();
    if (lost_its_end(file_.path())) throw broken("is cut short or damaged");
    if (decoded() == 0) throw no_samples(file_.path());
    return cut();
  }

  void check_length() const {
    const AVFormatContext& demuxer = file_.demuxer();
    const bool counted = counts_samples(demuxer, file_.stream());
    if (!counted && !tells_length(demuxer, file_.stream())) return;
    const std::int64_t told = samples_of(demuxer, file_.stream());
    if (told - decoded() <= (counted ? 0 : kPadding)) return;
    throw Error(ErrorKind::corrupt_file,
                fmt::format("{}: sound ends at {:.3f} s of {:.3f} s", file_.path().string(), seconds(),
                            static_cast<double>(told) / sound_.sample_rate),
                kFetchAgain);
  }

  Sound cut() {
    const auto count = static_cast<std::size_t>(std::min(most_, decoded()));
    sound_.left.resize(count);
    sound_.right.resize(count);
    check_wave(sound_.wave(), {.what = file_.path().string(), .hint = kFetchAgain});
    return std::move(sound_);
  }

  double seconds() const { return static_cast<double>(decoded()) / sound_.sample_rate; }

  Error broken(const std::string& what) const {
    return {ErrorKind::corrupt_file,
            fmt::format("{}: sound {} at {:.3f} s", file_.path().string(), what, seconds()), kFetchAgain};
  }

  const SoundFile& file_;
  ChannelMix mix_;
  CodecPtr codec_;
  std::int64_t most_;  // samples
  Sound sound_;
};

}  // namespace

SoundInfo probe_sound(const std::filesystem::path& path) {
  const SoundFile file(path);
  SoundInfo info = file.info();
  if (info.samples == 0) info.samples = count_samples(file.demuxer(), file.stream());
  if (info.samples == 0) throw no_samples(path);
  return info;
}

Sound read_sound(const std::filesystem::path& path, double most_seconds) {
  const SoundFile file(path);
  return SoundDecoder(file, most_seconds).run();
}

}  // namespace sluice::media
